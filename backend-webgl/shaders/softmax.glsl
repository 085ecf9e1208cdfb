// softmax of each row over its visible columns. With ROWS pass 1 has looked at whole rows.
//!include frame.glsl
//!include softmax_stats.glsl

vec4 value(int row, int col) {
    int start;
    int end;
    visible(row % queries, queries, out_cols, start, end);
//!if ROWS
    float largest = raw_at(src_largest, row);
    float factor = raw_at(src_factor, row);
//!else
    float largest;
    float factor;
    row_softmax(out_cols, row, largest, factor);
//!end
    vec4 mine = scores4(out_cols, row, col >> 2);
//!if !PACKED
    mine.x = pick(mine, col & 3);
//!end
    return mix(vec4(0.0), exp(clamp(mine - largest, -100.0, 0.0)) * factor, inside(col, start, end));
}
