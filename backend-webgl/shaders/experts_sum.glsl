// experts_sum: the products of a token's experts, added up with their weights; BIAS and RESIDUAL.
//!include frame.glsl
//!include experts.glsl

vec4 value(int row, int col) {
    vec4 mixed = vec4(0.0);
    for (int choice = 0; choice < choices; choice++) {
        int id = expert(row, choice);
        int first = start_a + id * stride_a;
        vec4 own = vec4(0.0);
        for (int group = 0; group < (k + 31) >> 5; group++) {
            look_at(row * choices + choice, group);
            own += products_a(first, col, out_cols, group);
        }
//!if BIAS
        own += lanes(src_bias, out_cols, id, col);
//!end
        mixed += load1(src_shares, choices, row, choice) * own;
    }
//!if RESIDUAL
    mixed += lanes(src_residual, out_cols, row, col);
//!end
    return mixed;
}
