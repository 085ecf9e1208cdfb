// matmul_id: rows of x times the matrices of the experts that ids choose; with GLU those of a gate and an up part.
//!include frame.glsl
//!include experts.glsl
//!if GLU
//!function GATED
//!end

vec4 value(int row, int col) {
    int token = row / choices;
    int id = expert(token, row - token * choices);
    int first = start_a + id * stride_a;
    vec4 gate = vec4(0.0);
//!if GLU
    int first_up = start_b + id * stride_b;
    vec4 up = vec4(0.0);
//!end
    for (int group = 0; group < (k + 31) >> 5; group++) {
        look_at(row / x_choices, group);
        gate += products_a(first, col, out_cols, group);
//!if GLU
        up += products_b(first_up, col, out_cols, group);
//!end
    }
//!if NORM
    // The root mean square is a factor of the row: it may come after the sums.
    float factor = 1.0 / sqrt(total(squares) / float(k) + eps);
    gate *= factor;
    up *= factor;
//!end
//!if BIAS
    gate += lanes(src_bias, out_cols, id, col);
    up += lanes(src_bias_up, out_cols, id, col);
//!end
//!if GLU
    return GATED(gate, up);
//!else
    return gate;
//!end
}
