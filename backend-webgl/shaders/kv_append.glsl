// qkv_append: the keys, normed and rotated, and the values of a fused projection, drawn into both caches at once.
// Without APPEND they are drawn into rows of their own, for caches in codecs of blocks, whose rows are encoded from
// those. With NORM_VALUES heads of values are normed, too.
//!include elements.glsl
//!include rope_at.glsl

float element(int row, int col) {
//!if APPEND
    return rotated(x_cols, row - append_first(), k_start + col, row);
//!else
    return rotated(x_cols, row, k_start + col, int(step_position) + row);
//!end
}

float element2(int row, int col) {
//!if APPEND
    int from = row - append_first();
//!else
    int from = row;
//!end
    int at = k_start + out_cols + col;
    float x = load1(src_x, x_cols, from, at);
//!if NORM_VALUES
    x *= raw_at(src_factors, from * normed_heads + at / head_dim) * load1(src_v_gamma, head_dim, 0, col % head_dim);
//!end
    return x;
}
