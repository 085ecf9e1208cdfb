// matmul of dense operands: batches of a and b repeat in place.
#include "frame.glsl"

vec4 value(int row, int col) {
    int i0 = row / (dim1 * m);
    int i1 = row / m % dim1;
    int i2 = row % m;
    int a_row = (i0 * a0 / dim0 * a1 + i1 * a1 / dim1) * m + i2;
    int b_row = (i0 * b0 / dim0 * b1 + i1 * b1 / dim1) * out_cols;
    int groups4 = (k + 3) >> 2;
    vec4 sum = vec4(0.0);
    for (int c4 = 0; c4 < groups4; c4++) {
        vec4 x = load4(src_a, k, a_row, c4);
        sum.x += dot(x, load4(src_b, k, b_row + col, c4));
#ifdef PACKED
        sum.y += dot(x, load4(src_b, k, b_row + min(col + 1, out_cols - 1), c4));
        sum.z += dot(x, load4(src_b, k, b_row + min(col + 2, out_cols - 1), c4));
        sum.w += dot(x, load4(src_b, k, b_row + min(col + 3, out_cols - 1), c4));
#endif
    }
    return sum;
}
