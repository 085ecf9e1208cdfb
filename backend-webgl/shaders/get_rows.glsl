// get_rows: rows of a table, TABLE_PACKED or dense: those that IDS, the history's TOKENS or POSITIONS name, or the
// FIRST or the LAST row.
//!include frame.glsl
//!if TABLE_PACKED
//!include group_lanes.glsl
//!include decode.glsl
//!decoder a
//!end

vec4 value(int row, int col) {
//!if IDS
    int id = int(load1(src_ids, ids_cols, row / ids_cols, row % ids_cols));
//!end
//!if TOKENS
    int id = int(load1(src_ids, 1, min(int(step_position) + row, n_ctx - 1), 0));
//!end
//!if POSITIONS
    int id = int(step_position) + row;
//!end
//!if FIRST
    int id = 0;
//!end
//!if LAST
    int id = int(step_rows) - 1;
//!end
    id = clamp(id, 0, table_rows - 1);
//!if TABLE_PACKED
    vec4 w0, w1, w2, w3, w4, w5, w6, w7;
    a_decode32(id * groups_a + (col >> 5), w0, w1, w2, w3, w4, w5, w6, w7);
    return group_lanes(col, w0, w1, w2, w3, w4, w5, w6, w7);
//!else
    return lanes(src_table, out_cols, id, col);
//!end
}
