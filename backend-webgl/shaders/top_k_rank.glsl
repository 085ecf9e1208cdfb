// top_k, pass 1: the rank of each element among its list of `list` neighbours; -1 if one of those is not finite.
//!include raw.glsl
//!include finite.glsl

float raw(int index) {
    int row = index / cols;
    int col = index - row * cols;
    int from = col / list * list;
    int end = min(from + list, cols);
    float mine = load1(src_x, cols, row, col);
    int rank = 0;
    for (int at = from; at < end; at++) {
        float x = load1(src_x, cols, row, at);
        if (!finite(x)) return -1.0;
        if (x > mine || (x == mine && at < col)) rank++;
    }
    return float(rank);
}
