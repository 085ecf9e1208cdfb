#version 300 es
precision highp float;
precision highp int;
precision highp sampler2D;
precision highp usampler2D;
precision highp usampler2DArray;
#define LINE_SHIFT 5
#define LINE 32
#define PAGE_SHIFT 11
#define PAGE 2048
#define WEIGHT_LINE_SHIFT 8
#define WEIGHT_LINE 256
#define WEIGHT_PAGE_SHIFT 11
#define WEIGHT_PAGE 2048
layout(std140) uniform Params {
    int out_rows;
    int out_cols;
    int append_unit;
    int append_max;
    int cols;
    int chunks;
};
layout(std140) uniform Step {
    uint step_position;
    uint step_rows;
    uint step_top_k;
    float step_top_p;
    float step_temperature;
    uint step_seed_lo;
    uint step_seed_hi;
    uint step_sequence;
};
uniform usampler2D t0;
#define src_x t0
uniform usampler2D t1;
#define src_chunks t1

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

#define TEXEL uvec4
#define fetch(source, at) uintBitsToFloat(texelFetch(source, at, 0))
#define texel_of(value) floatBitsToUint(value)


#define raw_at(source, index) fetch(source, fold(index)).x

#define LANES 4
#define load4(source, cols, row, c4) fetch(source, fold((row) * (((cols) + 3) >> 2) + (c4)))
#define load1(source, cols, row, col) pick(load4(source, cols, row, (col) >> 2), (col) & 3)
#define lanes(source, cols, row, col) load4(source, cols, row, (col) >> 2)

bvec4 inside(int col, int start, int end) {
    ivec4 at = ivec4(col) + ivec4(0, 1, 2, 3);
    return bvec4(ivec4(greaterThanEqual(at, ivec4(start))) * ivec4(lessThan(at, ivec4(end))));
}

vec4 keep(vec4 v, int col, int end) {
    return mix(vec4(0.0), v, inside(col, 0, end));
}

layout(location = 0) out TEXEL result;

int append_first() {
    return (int(step_position) + int(step_rows)) * append_unit;
}

vec4 value(int row, int col);

void main() {
    int texel = fragment();
    int row_texels = (out_cols + LANES - 1) / LANES;
    int row = texel / row_texels;
    int col = (texel - row * row_texels) * LANES;
    int count = append_unit;
    int first = append_first();
    if (row < first || row >= first + count || row >= out_rows) discard;
    result = texel_of(keep(value(row, col), col, out_cols));
}

float element(int row, int col);

vec4 value(int row, int col) {
    vec4 v = vec4(element(row, col), 0.0, 0.0, 0.0);
    if (col + 1 < out_cols) v.y = element(row, col + 1);
    if (col + 2 < out_cols) v.z = element(row, col + 2);
    if (col + 3 < out_cols) v.w = element(row, col + 3);
    return v;
}


float element(int row, int col) {
    int from = 0;
    int best = int(raw_at(src_chunks, from * chunks));
    if (best < 0) return -1.0;
    float largest = load1(src_x, cols, from, best);
    for (int i = 1; i < chunks; i += 4) {
        ivec4 of = from * chunks + min(ivec4(i) + ivec4(0, 1, 2, 3), chunks - 1);
        vec4 at = vec4(
            raw_at(src_chunks, of.x), raw_at(src_chunks, of.y), raw_at(src_chunks, of.z), raw_at(src_chunks, of.w)
        );
        if (any(lessThan(at, vec4(0.0)))) return -1.0;
        vec4 x = vec4(
            load1(src_x, cols, from, int(at.x)),
            load1(src_x, cols, from, int(at.y)),
            load1(src_x, cols, from, int(at.z)),
            load1(src_x, cols, from, int(at.w))
        );
        for (int lane = 0; lane < min(chunks - i, 4); lane++) {
            if (pick(x, lane) > largest) {
                largest = pick(x, lane);
                best = int(pick(at, lane));
            }
        }
    }
    return float(best);
}
// argmax APPEND APPEND_NEXT bits
