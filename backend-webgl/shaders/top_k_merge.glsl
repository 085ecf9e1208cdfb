// top_k, pass 3 and on: two neighbouring lists become one by the merge path; the upper ends are dropped.
//!include raw.glsl

int candidate(int row, int which, int rank) {
    return which < lists ? int(raw_at(src_lists, (row * lists + which) * list + rank)) : -1;
}

// Whether the candidate of the first list comes before that of the second.
bool before(int row, int a, int b) {
    if (a == -2 || b == -2) return a == -2;
    if (a < 0 || b < 0) return b < 0;
    return load1(src_x, cols, row, a) >= load1(src_x, cols, row, b);
}

float raw(int index) {
    int half_lists = (lists + 1) >> 1;
    int which = index / list;
    int rank = index - which * list;
    int row = which / half_lists;
    int a = 2 * (which - row * half_lists);
    int low = 0;
    int high = rank;
    while (low < high) {
        int mid = (low + high) >> 1;
        if (before(row, candidate(row, a, mid), candidate(row, a + 1, rank - 1 - mid))) low = mid + 1;
        else high = mid;
    }
    int x = candidate(row, a, low);
    int y = candidate(row, a + 1, rank - low);
    return float(before(row, x, y) ? x : y);
}
