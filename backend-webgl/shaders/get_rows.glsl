// get_rows: rows of a table, TABLE_PACKED or dense. INDEX: 0 ids, 1 the history, 2 positions, 3 the last row.
#include "frame.glsl"
#ifdef TABLE_PACKED
#include "group_lanes.glsl"
#endif

vec4 value(int row, int col) {
#if INDEX == 0
    int id = int(load1(src_ids, ids_cols, row / ids_cols, row % ids_cols));
#elif INDEX == 1
    int id = int(load1(src_ids, 1, min(int(step_position) + row, n_ctx - 1), 0));
#elif INDEX == 2
    int id = int(step_position) + row;
#else
    int id = int(step_rows) - 1;
#endif
    id = clamp(id, 0, table_rows - 1);
#ifdef TABLE_PACKED
    vec4 w0, w1, w2, w3, w4, w5, w6, w7;
    decode32_a(id * groups_a + (col >> 5), w0, w1, w2, w3, w4, w5, w6, w7);
    return group_lanes(col, w0, w1, w2, w3, w4, w5, w6, w7);
#else
    return lanes(src_table, out_cols, id, col);
#endif
}
