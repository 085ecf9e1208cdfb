// argsort, pass 3 and on: two neighbouring lists become one of twice the length by the merge path.
//!include raw.glsl
//!include sort_key.glsl

int candidate(int row, int which, int rank) {
    return which < lists && rank < list ? int(raw_at(src_lists, (row * lists + which) * list + rank)) : -1;
}

// Whether the candidate of the first list comes before that of the second.
bool before(int row, int a, int b) {
    if (a < 0 || b < 0) return b < 0;
    return sort_key(load1(src_x, cols, row, a)) <= sort_key(load1(src_x, cols, row, b));
}

float raw(int index) {
    int pairs = (lists + 1) >> 1;
    int which = index / (2 * list);
    int rank = index - which * 2 * list;
    int row = which / pairs;
    int a = 2 * (which - row * pairs);
    int low = max(rank - list, 0);
    int high = min(rank, list);
    while (low < high) {
        int mid = (low + high) >> 1;
        if (before(row, candidate(row, a, mid), candidate(row, a + 1, rank - 1 - mid))) low = mid + 1;
        else high = mid;
    }
    int x = candidate(row, a, low);
    int y = candidate(row, a + 1, rank - low);
    return float(before(row, x, y) ? x : y);
}
