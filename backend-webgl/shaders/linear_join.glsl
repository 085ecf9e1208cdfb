// linear and matmul, pass 2: the epilogue of sums that pass 1 made in blocks of rows, each row of a block in a target
// of its own; or, with SLICED, in slices, with NORM those of a row whose norm is applied here.
//!include frame.glsl
//!include epilogue.glsl
//!if SLICED

vec4 sums(int row, int col) {
    vec4 sum = lanes(src_sums, sum_cols, row, col);
//!if NORM
    float squares = load1(src_sums, sum_cols, row, sum_cols - LANES);
    sum *= 1.0 / sqrt(squares / float(k) + eps);
//!end
    return sum;
}
//!else
//!include block.glsl

vec4 sums(int row, int col) {
    int matrix = row / x_rows;
    row -= matrix * x_rows;
    int which = row / apart;
    ivec2 at = fold(block_texel(matrix * apart + row - which * apart, col / LANES));
    if (which == 0) return fetch(src_row0, at);
    if (which == 1) return fetch(src_row1, at);
    if (which == 2) return fetch(src_row2, at);
//!if EIGHT
    if (which == 4) return fetch(src_row4, at);
    if (which == 5) return fetch(src_row5, at);
    if (which == 6) return fetch(src_row6, at);
    if (which == 7) return fetch(src_row7, at);
//!end
    return fetch(src_row3, at);
}
//!end

vec4 value(int row, int col) {
//!if GLU
    vec4 up = sums(row, out_cols + col);
//!if PACKED
    // The second half need not begin at a whole texel.
    int shift = out_cols & 3;
    vec4 next = sums(row, min(out_cols + col + 4, weight_rows - 1));
    if (shift == 1) up = vec4(up.yzw, next.x);
    if (shift == 2) up = vec4(up.zw, next.xy);
    if (shift == 3) up = vec4(up.w, next.xyz);
//!end
    return finish(row, col, sums(row, col), up);
//!else
    return finish(row, col, sums(row, col), vec4(1.0));
//!end
}
