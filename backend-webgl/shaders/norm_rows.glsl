// norm of several rows, pass 1: of each row the mean and the reciprocal deviation.
//!include raw.glsl
//!include norm_stats.glsl

float factor;

float raw(int row) {
    float mean;
    row_stats(cols, row, eps, mean, factor);
    return mean;
}

float raw2(int row) {
    return factor;
}
