// Dense tensors: rows of values, folded into lines of LINE texels, which fill pages of PAGE lines side by side. With
// PACKED a texel holds 4 neighbours of a row and rows are padded to whole texels with zeros; otherwise one value.

ivec2 fold(int texel) {
    int line = texel >> LINE_SHIFT;
    return ivec2(((line >> PAGE_SHIFT) << LINE_SHIFT) + (texel & (LINE - 1)), line & (PAGE - 1));
}

int fragment() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    int line = ((at.x >> LINE_SHIFT) << PAGE_SHIFT) + at.y;
    return (line << LINE_SHIFT) + (at.x & (LINE - 1));
}

float pick(vec4 v, int lane) {
    return v[lane];
}

// The value of a texture that holds one value a texel in either layout.
float raw_at(sampler2D source, int index) {
    return texelFetch(source, fold(index), 0).x;
}

#ifdef PACKED
#define LANES 4

vec4 load4(sampler2D source, int cols, int row, int c4) {
    return texelFetch(source, fold(row * ((cols + 3) >> 2) + c4), 0);
}

float load1(sampler2D source, int cols, int row, int col) {
    return pick(load4(source, cols, row, col >> 2), col & 3);
}

// The values of the columns that the fragment at column `col` makes.
vec4 lanes(sampler2D source, int cols, int row, int col) {
    return load4(source, cols, row, col >> 2);
}
#else
#define LANES 1

float load1(sampler2D source, int cols, int row, int col) {
    return texelFetch(source, fold(row * cols + col), 0).x;
}

vec4 load4(sampler2D source, int cols, int row, int c4) {
    int col = 4 * c4;
    vec4 v = vec4(load1(source, cols, row, col), 0.0, 0.0, 0.0);
    if (col + 1 < cols) v.y = load1(source, cols, row, col + 1);
    if (col + 2 < cols) v.z = load1(source, cols, row, col + 2);
    if (col + 3 < cols) v.w = load1(source, cols, row, col + 3);
    return v;
}

vec4 lanes(sampler2D source, int cols, int row, int col) {
    return vec4(load1(source, cols, row, col), 0.0, 0.0, 0.0);
}
#endif

// Which of 4 columns from `col` on lie in start..end.
bvec4 inside(int col, int start, int end) {
    ivec4 at = ivec4(col) + ivec4(0, 1, 2, 3);
    return bvec4(ivec4(greaterThanEqual(at, ivec4(start))) * ivec4(lessThan(at, ivec4(end))));
}

vec4 keep(vec4 v, int col, int end) {
    return mix(vec4(0.0), v, inside(col, 0, end));
}
