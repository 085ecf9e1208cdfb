// slice: columns from `start` on.
//!include elements.glsl

float element(int row, int col) {
    return load1(src_x, x_cols, row, col + start);
}
