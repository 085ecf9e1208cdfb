// qkv_append: the keys, rotated, and the values of a fused projection, drawn into both caches at once.
#include "elements.glsl"
#include "rope_at.glsl"

float element(int row, int col) {
    return rotated(src_x, x_cols, row - append_first(), k_start + col, row);
}

float element2(int row, int col) {
    return load1(src_x, x_cols, row - append_first(), k_start + out_cols + col);
}
