// qkv_append: the keys, normed and rotated, and the values of a fused projection, drawn into both caches at once.
// Without APPEND they are drawn into rows of their own, for caches in codecs of blocks, whose rows are encoded from
// those.
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
    return load1(src_x, x_cols, row - append_first(), k_start + out_cols + col);
//!else
    return load1(src_x, x_cols, row, k_start + out_cols + col);
//!end
}
