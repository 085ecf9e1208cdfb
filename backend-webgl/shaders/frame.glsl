// The frame of most kernels: `vec4 value(int row, int col)` makes LANES columns of the result from `col` on. With TWO,
// `value2` makes those of a second target of the same shape, and with THREE also `value3`; they are called in this
// order. With APPEND the result is a state, of which only the step's new rows are drawn, and `append_first` is the
// first of them.
//!include dense.glsl

layout(location = 0) out TEXEL result;
//!if TWO
layout(location = 1) out TEXEL result2;
//!end
//!if THREE
layout(location = 2) out TEXEL result3;
//!end

//!if APPEND
int append_first() {
//!if APPEND_NEXT
    return (int(step_position) + int(step_rows)) * append_unit;
//!else
//!if APPEND_EACH
    return (int(step_position) + 1) * append_unit;
//!else
    return int(step_position) * append_unit;
//!end
//!end
}
//!end

vec4 value(int row, int col);
//!if TWO
vec4 value2(int row, int col);
//!end
//!if THREE
vec4 value3(int row, int col);
//!end

void main() {
    int texel = fragment();
    int row_texels = (out_cols + LANES - 1) / LANES;
    int row = texel / row_texels;
    int col = (texel - row * row_texels) * LANES;
//!if APPEND
//!if APPEND_NEXT
    int count = append_unit;
//!else
    int count = min(int(step_rows), append_max) * append_unit;
//!end
    int first = append_first();
    if (row < first || row >= first + count || row >= out_rows) discard;
//!else
    if (row >= out_rows) discard;
//!if PART
    // Some rows are drawn by themselves.
    if (row < part_first || row >= part_end) discard;
//!end
//!end
    result = texel_of(keep(value(row, col), col, out_cols));
//!if TWO
    result2 = texel_of(keep(value2(row, col), col, out_cols));
//!end
//!if THREE
    result3 = texel_of(keep(value3(row, col), col, out_cols));
//!end
}
