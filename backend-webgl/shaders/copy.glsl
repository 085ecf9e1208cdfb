// copy: the same elements in rows of another length.
//!include elements.glsl

float element(int row, int col) {
    int at = row * out_cols + col;
    return load1(src_x, x_cols, at / x_cols, at % x_cols);
}
