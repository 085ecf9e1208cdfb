// Groups of 32 columns of a dense operand, 4 columns at a time; those past the end of a row count as zero.

#if defined(WHOLE_GROUPS) && LINE >= 32
// Rows are whole groups, and a group lies in one line of the texture: it is looked up once.
ivec2 group_at(int cols, int row, int group) {
    return fold((row * cols + 32 * group) / LANES);
}

vec4 group4(sampler2D source, int cols, ivec2 at, int i) {
#ifdef PACKED
    return texelFetch(source, at + ivec2(i, 0), 0);
#else
    ivec2 first = at + ivec2(4 * i, 0);
    return vec4(
        texelFetch(source, first, 0).x,
        texelFetch(source, first + ivec2(1, 0), 0).x,
        texelFetch(source, first + ivec2(2, 0), 0).x,
        texelFetch(source, first + ivec2(3, 0), 0).x
    );
#endif
}

vec4 keep4(vec4 v, int cols, ivec2 at, int i) {
    return v;
}
#else
ivec2 group_at(int cols, int row, int group) {
    return ivec2(8 * group, row);
}

vec4 group4(sampler2D source, int cols, ivec2 at, int i) {
    int c4 = at.x + i;
    vec4 v = load4(source, cols, at.y, min(c4, (cols - 1) >> 2));
    return mix(vec4(0.0), v, bvec4(4 * c4 < cols));
}

// Zero for columns past the end of a row.
vec4 keep4(vec4 v, int cols, ivec2 at, int i) {
    return keep(v, 4 * (at.x + i), cols);
}
#endif

float total(vec4 v) {
    return (v.x + v.y) + (v.z + v.w);
}
