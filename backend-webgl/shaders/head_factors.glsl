// qkv_append with a norm, pass 1: of each head of Q and K in each row the reciprocal root mean square.
//!include raw.glsl
//!include head_stats.glsl

float raw(int index) {
    float mean;
    float factor;
    int row = index / normed_heads;
    head_stats(x_cols, row, (index - row * normed_heads) * head_dim, head_dim, eps, mean, factor);
    return factor;
}
