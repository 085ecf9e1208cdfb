// qkv_append with a norm, pass 1: of each head of Q and K in each row, with
// NORM_WHOLE of all heads of Q and all of K, the reciprocal root mean square.
//!include raw.glsl
//!include head_stats.glsl

float raw(int index) {
    float mean;
    float factor;
    int row = index / normed_heads;
//!if NORM_WHOLE
    bool of_queries = index == row * normed_heads;
    head_stats(x_cols, row, of_queries ? 0 : q_width, of_queries ? q_width : k_width, eps, mean, factor);
//!else
    head_stats(x_cols, row, (index - row * normed_heads) * head_dim, head_dim, eps, mean, factor);
//!end
    return factor;
}
