// binary: ELEMENT of operands that repeat along dimensions whose stride is 0.
//!include elements.glsl
//!function ELEMENT

float element(int row, int col) {
    int i0 = row / (dim1 * dim2);
    int i1 = row / dim2 % dim1;
    int i2 = row % dim2;
    float a = load1(src_a, a_cols, i0 * a0 + i1 * a1 + i2 * a2, col * a3);
    float b = load1(src_b, b_cols, i0 * b0 + i1 * b1 + i2 * b2, col * b3);
    return ELEMENT(vec4(a), vec4(b)).x;
}
