// argsort, pass 1: the rank of each element among its list of `list` neighbours.
//!include raw.glsl
//!include sort_key.glsl

float raw(int index) {
    int row = index / cols;
    int col = index - row * cols;
    int from = col / list * list;
    uint mine = sort_key(load1(src_x, cols, row, col));
    int rank = 0;
    for (int at = from; at < min(from + list, cols); at++) {
        uint other = sort_key(load1(src_x, cols, row, at));
        if (other < mine || (other == mine && at < col)) rank++;
    }
    return float(rank);
}
