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
    int x_cols;
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

layout(location = 0) out uvec4 result;

int append_first() {
    return int(step_position) + 1;
}

uvec4 coded(int row, int texel);

void main() {
    int texel = fragment();
    int row_texels = out_cols >> 2;
    int row = texel / row_texels;
    int count = min(int(step_rows), append_max);
    int first = append_first();
    if (row < first || row >= first + count || row >= out_rows) discard;
    result = coded(row, texel - row * row_texels);
}

vec4 quad_of(int row, int c4) {
    return load4(src_x, x_cols, row - append_first(), c4);
}

uint rows_half_bits(float value) {
    uint bits = floatBitsToUint(value);
    uint magnitude = bits & 0x7fffffffu;
    uint half_magnitude = min((magnitude + 0xfffu + ((magnitude >> 13u) & 1u) - 0x38000000u) >> 13u, 0x7c00u);
    if (magnitude < 0x38800000u) half_magnitude = uint(roundEven(abs(value) * 16777216.0));
    if (magnitude > 0x7f800000u) half_magnitude = 0x7e00u;
    return ((bits >> 16u) & 0x8000u) | half_magnitude;
}

uint rows_pair(vec2 values) {
    return rows_half_bits(values.x) | rows_half_bits(values.y) << 16u;
}

uvec4 rows_texel(int row, int at) {
    vec4 low = quad_of(row, 2 * at);
    vec4 high = quad_of(row, 2 * at + 1);
    return uvec4(rows_pair(low.xy), rows_pair(low.zw), rows_pair(high.xy), rows_pair(high.zw));
}


uvec4 coded(int row, int texel) {
    return rows_texel(row, texel);
}
// append f16 APPEND APPEND_EACH BLOCKS bits
