// weighted_sum: the rows of a token added up, each with its weight.
//!include frame.glsl

vec4 value(int row, int col) {
    vec4 sum = vec4(0.0);
    for (int c = 0; c < choices; c++) {
        sum += load1(src_shares, choices, row, c) * lanes(src_x, out_cols, row * choices + c, col);
    }
    return sum;
}
