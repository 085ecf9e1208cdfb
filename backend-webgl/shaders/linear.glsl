// linear (and matmul with packed weights): NORM, matmul, BIAS, ACT, GLU and RESIDUAL in one.
#include "frame.glsl"
#include "epilogue.glsl"
#include "norm_stats.glsl"

vec4 x0, x1, x2, x3, x4, x5, x6, x7;

float product(int weight_row, int group) {
    vec4 w0, w1, w2, w3, w4, w5, w6, w7;
    decode32_a(min(weight_row, weight_rows - 1) * groups_a + group, w0, w1, w2, w3, w4, w5, w6, w7);
    return ((dot(w0, x0) + dot(w1, x1)) + (dot(w2, x2) + dot(w3, x3)))
        + ((dot(w4, x4) + dot(w5, x5)) + (dot(w6, x6) + dot(w7, x7)));
}

vec4 products(int col, int group) {
#ifdef PACKED
    return vec4(product(col, group), product(col + 1, group), product(col + 2, group), product(col + 3, group));
#else
    return vec4(product(col, group), 0.0, 0.0, 0.0);
#endif
}

float norm_mean;
float norm_factor;
vec4 squares = vec4(0.0);

// Four columns of the operand; those past the end of a row count as zero.
vec4 operand(int row, int c4) {
    int at = min(c4, (k - 1) >> 2);
    vec4 x = load4(src_x, k, row, at);
#ifdef NORM
    vec4 gamma = load4(src_gamma, k, 0, at);
#ifdef LAYER
    x = (x - norm_mean) * norm_factor * gamma + load4(src_beta, k, 0, at);
#else
    squares += mix(vec4(0.0), x * x, bvec4(4 * c4 < k));
    x *= gamma;
#endif
#endif
    return mix(vec4(0.0), x, bvec4(4 * c4 < k));
}

vec4 value(int row, int col) {
#ifdef LAYER
    row_stats(src_x, k, row, eps, norm_mean, norm_factor);
#endif
    int groups = (k + 31) >> 5;
    vec4 sum = vec4(0.0);
#ifdef GLU
    vec4 up = vec4(0.0);
#endif
    for (int group = 0; group < groups; group++) {
        int c4 = 8 * group;
        x0 = operand(row, c4);
        x1 = operand(row, c4 + 1);
        x2 = operand(row, c4 + 2);
        x3 = operand(row, c4 + 3);
        x4 = operand(row, c4 + 4);
        x5 = operand(row, c4 + 5);
        x6 = operand(row, c4 + 6);
        x7 = operand(row, c4 + 7);
        sum += products(col, group);
#ifdef GLU
        up += products(out_cols + col, group);
#endif
    }
#if defined(NORM) && !defined(LAYER)
    // The root mean square is a factor of the row: it may come after the sums.
    float factor = 1.0 / sqrt(dot(squares, vec4(1.0)) / float(k) + eps);
    sum *= factor;
#ifdef GLU
    up *= factor;
#endif
#endif
#ifdef GLU
    return finish(row, col, sum, up);
#else
    return finish(row, col, sum, vec4(1.0));
#endif
}
