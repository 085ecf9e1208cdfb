// unary: ACT of each element.
//!include frame.glsl
//!include activation.glsl

vec4 value(int row, int col) {
    return ACT(lanes(src_x, out_cols, row, col));
}
