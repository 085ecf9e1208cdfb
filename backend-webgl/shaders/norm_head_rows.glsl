// norm of heads, pass 1: of each head of each row the mean and the reciprocal deviation.
//!include raw.glsl
//!include head_stats.glsl

float factor;

float raw(int index) {
    float mean;
    int row = index / heads;
    head_stats(cols, row, (index - row * heads) * head_dim, head_dim, eps, mean, factor);
    return mean;
}

float raw2(int index) {
    return factor;
}
