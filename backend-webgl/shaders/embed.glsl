// embed: the history's token rows plus position rows.
//!include frame.glsl
//!include group_lanes.glsl
//!include decode.glsl
//!decoder a
//!decoder b

vec4 value(int row, int col) {
    int position = int(step_position) + row;
    int id = clamp(int(load1(src_ids, 1, min(position, n_ctx - 1), 0)), 0, table_rows - 1);
    int at = clamp(position, 0, position_rows - 1);
    vec4 w0, w1, w2, w3, w4, w5, w6, w7;
    a_decode32(id * groups_a + (col >> 5), w0, w1, w2, w3, w4, w5, w6, w7);
    vec4 token = group_lanes(col, w0, w1, w2, w3, w4, w5, w6, w7);
    b_decode32(at * groups_b + (col >> 5), w0, w1, w2, w3, w4, w5, w6, w7);
    return token + group_lanes(col, w0, w1, w2, w3, w4, w5, w6, w7);
}
