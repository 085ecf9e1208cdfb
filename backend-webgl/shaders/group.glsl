// Groups of 32 columns of a dense operand, 4 columns at a time; those past the end of a row count as zero.

//!if WHOLE_GROUPS && LONG_LINES
// Rows are whole groups, and a group lies in one line of the texture: it is looked up once.
ivec2 group_at(int cols, int row, int group) {
    return fold((row * cols + 32 * group) / LANES);
}

//!if PACKED
#define group4(source, cols, at, i) fetch(source, (at) + ivec2(i, 0))
//!else
#define group1(source, at, i) fetch(source, (at) + ivec2(i, 0)).x
#define group4(source, cols, at, i) \
    vec4( \
        group1(source, at, 4 * (i)), \
        group1(source, at, 4 * (i) + 1), \
        group1(source, at, 4 * (i) + 2), \
        group1(source, at, 4 * (i) + 3) \
    )
//!end

vec4 keep4(vec4 v, int cols, ivec2 at, int i) {
    return v;
}
//!else
ivec2 group_at(int cols, int row, int group) {
    return ivec2(8 * group, row);
}

vec4 within_row(vec4 v, int cols, int c4) {
    return mix(vec4(0.0), v, bvec4(4 * c4 < cols));
}

#define group4(source, cols, at, i) \
    within_row(load4(source, cols, (at).y, min((at).x + (i), ((cols) - 1) >> 2)), cols, (at).x + (i))

// Zero for columns past the end of a row.
vec4 keep4(vec4 v, int cols, ivec2 at, int i) {
    return keep(v, 4 * (at.x + i), cols);
}
//!end

float total(vec4 v) {
    return (v.x + v.y) + (v.z + v.w);
}
