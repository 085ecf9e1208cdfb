// solve_triangular: four rows of each solution, from `first` to before `end`. With BEGUN those before them were found
// by the draw before, and are copied. A draw cannot read what it makes, so a fragment makes those of the four that it
// needs for itself.
//!include frame.glsl

vec4 value(int row, int col) {
    int matrix = row / n * n;
    int mine = row - matrix;
    if (mine >= end) return vec4(0.0);
//!if BEGUN
    if (mine < first) return lanes(src_x, out_cols, row, col);
//!end
    // The latest rows, the last one first.
    vec4 last = vec4(0.0);
    vec4 second = vec4(0.0);
    vec4 third = vec4(0.0);
    for (int i = first; i <= mine; i++) {
        vec4 sum = lanes(src_b, out_cols, matrix + i, col);
//!if BEGUN
        for (int j = 0; j < first; j += 4) {
            vec4 factors = load4(src_a, n, matrix + i, j >> 2);
            sum -= factors.x * lanes(src_x, out_cols, matrix + j, col);
            sum -= factors.y * lanes(src_x, out_cols, matrix + j + 1, col);
            sum -= factors.z * lanes(src_x, out_cols, matrix + j + 2, col);
            sum -= factors.w * lanes(src_x, out_cols, matrix + j + 3, col);
        }
//!end
        vec4 factors = load4(src_a, n, matrix + i, first >> 2);
        int count = i - first;
        if (count == 1) sum -= factors.x * last;
        if (count == 2) sum -= factors.x * second + factors.y * last;
        if (count == 3) sum -= factors.x * third + factors.y * second + factors.z * last;
        third = second;
        second = last;
        last = sum / pick(factors, count);
    }
    return last;
}
