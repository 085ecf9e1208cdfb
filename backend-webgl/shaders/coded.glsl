// The frame of kernels that append rows to a state in a codec of blocks: `uvec4 coded(int row, int texel)` makes a
// texel of a row.
//!include dense.glsl

layout(location = 0) out uvec4 result;

int append_first() {
//!if APPEND_NEXT
    return int(step_position) + int(step_rows);
//!else
//!if APPEND_EACH
    return int(step_position) + 1;
//!else
    return int(step_position);
//!end
//!end
}

uvec4 coded(int row, int texel);

void main() {
    int texel = fragment();
    int row_texels = out_cols >> 2;
    int row = texel / row_texels;
//!if APPEND_NEXT
    int count = 1;
//!else
    int count = min(int(step_rows), append_max);
//!end
    int first = append_first();
    if (row < first || row >= first + count || row >= out_rows) discard;
    result = coded(row, texel - row * row_texels);
}
