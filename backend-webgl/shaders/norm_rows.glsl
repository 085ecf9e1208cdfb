// norm of several rows, pass 1: of each row the mean and the reciprocal deviation, one after the other.
#include "raw.glsl"
#include "norm_stats.glsl"

float raw(int index) {
    float mean;
    float factor;
    row_stats(src_x, cols, index >> 1, eps, mean, factor);
    return (index & 1) == 0 ? mean : factor;
}
