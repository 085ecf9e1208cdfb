// clamp: each element between two bounds.
//!include frame.glsl

vec4 value(int row, int col) {
    return clamp(lanes(src_x, out_cols, row, col), lo, hi);
}
