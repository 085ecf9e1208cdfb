// scale: each element times a number, plus another.
//!include frame.glsl

vec4 value(int row, int col) {
    return lanes(src_x, out_cols, row, col) * factor + bias;
}
