// linear with several rows, pass 2: takes each row from its target, and the epilogue.
#include "frame.glsl"
#include "epilogue.glsl"

vec4 sums(int row, int col) {
    int block = row >> 2;
    int which = row & 3;
    if (which == 0) return lanes(src_row0, weight_rows, block, col);
    if (which == 1) return lanes(src_row1, weight_rows, block, col);
    if (which == 2) return lanes(src_row2, weight_rows, block, col);
    return lanes(src_row3, weight_rows, block, col);
}

vec4 value(int row, int col) {
#ifdef GLU
    vec4 up = sums(row, out_cols + col);
#ifdef PACKED
    // The second half need not begin at a whole texel.
    int shift = out_cols & 3;
    vec4 next = sums(row, min(out_cols + col + 4, weight_rows - 1));
    if (shift == 1) up = vec4(up.yzw, next.x);
    if (shift == 2) up = vec4(up.zw, next.xy);
    if (shift == 3) up = vec4(up.w, next.xyz);
#endif
    return finish(row, col, sums(row, col), up);
#else
    return finish(row, col, sums(row, col), vec4(1.0));
#endif
}
