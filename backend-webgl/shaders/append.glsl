// append: rows of x.
//!if BLOCKS
//!include coded.glsl

vec4 quad_of(int row, int c4) {
    return load4(src_x, x_cols, row - append_first(), c4);
}

//!writer rows

uvec4 coded(int row, int texel) {
    return rows_texel(row, texel);
}
//!else
//!include frame.glsl

vec4 value(int row, int col) {
    return lanes(src_x, out_cols, row - append_first(), col);
}
//!end
