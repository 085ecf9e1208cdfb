// ssm_scan: some rows of the result, whose channels go through the states since the first of those rows, with BIAS of
// their paces and with a GATE. With STATE the states after them instead.
//!if STATE
//!include frame.glsl
//!else
//!include elements.glsl
//!end
//!include columns.glsl
//!function unary_softplus
//!if GATE
//!function ACT
//!end

// How much of a row a head takes in.
float pace_of(int row, int head) {
    float pace = load1(src_dt, dt_cols, row, dt_start + head);
//!if BIAS
    pace += load1(src_bias, heads, 0, head);
//!end
    return unary_softplus(vec4(pace)).x;
}

//!if STATE
vec4 value(int channel, int col) {
    int head = channel / head_dim;
    int mix_at = b_start + head / group_heads * out_cols + col;
    vec4 state = lanes(src_state, out_cols, channel, col);
    vec4 a = decays == 1 ? vec4(load1(src_a, 1, head, 0)) : lanes(src_a, out_cols, head, col);
    int end = min(int(step_rows), part_end);
    for (int row = part_first; row < end; row++) {
        float pace = pace_of(row, head);
        float taken = pace * load1(src_x, x_cols, row, x_start + channel);
        state = state * exp(pace * a) + taken * column_lanes(src_b, b_cols, row, mix_at);
    }
    return state;
}
//!else
float element(int row, int channel) {
    if (row >= int(step_rows)) return 0.0;
    int head = channel / head_dim;
    int mix_at = head / group_heads * n;
    float sum = load1(src_skip, heads, 0, head) * load1(src_x, x_cols, row, x_start + channel);
    for (int at = 0; at < n; at += 4) {
        vec4 state = load4(src_state, n, channel, at >> 2);
        vec4 a = decays == 1 ? vec4(load1(src_a, 1, head, 0)) : load4(src_a, n, head, at >> 2);
        for (int i = part_first; i <= row; i++) {
            float pace = pace_of(i, head);
            float taken = pace * load1(src_x, x_cols, i, x_start + channel);
            vec4 b = columns4(src_b, b_cols, i, b_start + mix_at + at);
            state = state * exp(pace * a) + taken * keep(b, at, n);
        }
        vec4 c = columns4(src_c, c_cols, row, c_start + mix_at + at);
        sum += dot(state, keep(c, at, n));
    }
//!if GATE
    sum *= ACT(vec4(load1(src_z, z_cols, row, z_start + channel))).x;
//!end
    return sum;
}
//!end
