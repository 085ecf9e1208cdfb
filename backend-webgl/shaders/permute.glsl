// permute: strides of the result's dimensions in the operand.
//!include elements.glsl

float element(int row, int col) {
    int i0 = row / (dim1 * dim2);
    int i1 = row / dim2 % dim1;
    int i2 = row % dim2;
    int at = i0 * s0 + i1 * s1 + i2 * s2 + col * s3;
    return load1(src_x, x_cols, at / x_cols, at % x_cols);
}
