// gated_delta_net: one row of the result and, beside it, what the heads learn of that row. With STATE the matrices of
// the heads after they have learned that. With GATES gates are made of g and beta.
//!include frame.glsl
//!include columns.glsl
//!if GATES
//!function unary_sigmoid
//!function unary_softplus
//!end

int key_head(int head) {
//!if GROUPED
    return head / (heads / heads_k);
//!else
    return head % heads_k;
//!end
}

//!if GATES
// What a head's matrix fades by, as a logarithm.
float fading(int row, int head) {
    float pace = load1(src_g, g_cols, row, g_start + head) + load1(src_bias, heads, 0, head);
    return unary_softplus(vec4(pace)).x * load1(src_decays, heads, 0, head);
}
//!end

//!if STATE
vec4 value(int channel, int col) {
    vec4 state = lanes(src_state, out_cols, channel, col);
    if (part_first >= int(step_rows)) return state;
    int head = channel / dv;
    vec4 key = column_lanes(src_k, k_cols, part_first, k_start + key_head(head) * out_cols + col);
    float learned = load1(src_learned, heads * dv, part_first, channel);
//!if GATES
    vec4 gate = vec4(fading(part_first, head));
//!else
//!if COLUMN_GATES
    vec4 gate = column_lanes(src_g, g_cols, part_first, g_start + head * out_cols + col);
//!else
    vec4 gate = vec4(load1(src_g, g_cols, part_first, g_start + head));
//!end
//!end
    return state * exp(gate) + learned * key;
}
//!else
vec4 learned = vec4(0.0);

// An element of the result, and what is learned there.
vec2 recall(int row, int channel) {
    if (row >= int(step_rows)) return vec2(0.0);
    int head = channel / dv;
    int at = key_head(head) * dk;
    // What the key recalls, what the query would, and what the query has in common with the key.
    vec3 sums = vec3(0.0);
//!if GATES
    vec4 gate = vec4(fading(row, head));
//!else
//!if !COLUMN_GATES
    vec4 gate = vec4(load1(src_g, g_cols, row, g_start + head));
//!end
//!end
    for (int col = 0; col < dk; col += 4) {
        vec4 state = load4(src_state, dk, channel, col >> 2);
//!if COLUMN_GATES
        vec4 gate = keep(columns4(src_g, g_cols, row, g_start + head * dk + col), col, dk);
//!end
        state *= exp(gate);
        vec4 key = keep(columns4(src_k, k_cols, row, k_start + at + col), col, dk);
        vec4 query = keep(columns4(src_q, q_cols, row, q_start + at + col), col, dk);
        sums += vec3(dot(state, key), dot(state, query), dot(key, query));
    }
    float value = load1(src_v, v_cols, row, v_start + channel);
    float share = load1(src_beta, beta_cols, row, beta_start + head);
//!if GATES
    share = unary_sigmoid(vec4(share)).x;
//!end
    float more = (value - sums.x) * share;
    return vec2((sums.y + more * sums.z) * scale, more);
}

vec4 value(int row, int col) {
    vec2 a = recall(row, col);
    vec2 b = vec2(0.0);
    vec2 c = vec2(0.0);
    vec2 d = vec2(0.0);
//!if PACKED
    if (col + 1 < out_cols) b = recall(row, col + 1);
    if (col + 2 < out_cols) c = recall(row, col + 2);
    if (col + 3 < out_cols) d = recall(row, col + 3);
//!end
    learned = vec4(a.y, b.y, c.y, d.y);
    return vec4(a.x, b.x, c.x, d.x);
}

vec4 value2(int row, int col) {
    return learned;
}
//!end
