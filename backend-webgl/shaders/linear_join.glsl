// linear with several rows, pass 2: takes each row from its target, and the epilogue.
//!include frame.glsl
//!include epilogue.glsl
//!include block.glsl

vec4 sums(int row, int col) {
    int which = row / blocks;
    ivec2 at = fold(block_texel(row - which * blocks, col / LANES));
    if (which == 0) return texelFetch(src_row0, at, 0);
    if (which == 1) return texelFetch(src_row1, at, 0);
    if (which == 2) return texelFetch(src_row2, at, 0);
//!if EIGHT
    if (which == 4) return texelFetch(src_row4, at, 0);
    if (which == 5) return texelFetch(src_row5, at, 0);
    if (which == 6) return texelFetch(src_row6, at, 0);
    if (which == 7) return texelFetch(src_row7, at, 0);
//!end
    return texelFetch(src_row3, at, 0);
}

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
