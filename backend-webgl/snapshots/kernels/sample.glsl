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
    int k;
    int rows;
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
#define src_values t0
uniform usampler2D t1;
#define src_ids t1
uniform usampler2D t2;
#define src_penalties t2

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


vec4 value(int row, int col);

void main() {
    int texel = fragment();
    int row_texels = (out_cols + LANES - 1) / LANES;
    int row = texel / row_texels;
    int col = (texel - row * row_texels) * LANES;
    if (row >= out_rows) discard;
    result = texel_of(keep(value(row, col), col, out_cols));
}
bool finite(float x) {
    return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u;
}

uint pcg(uint x) {
    uint state = x * 747796405u + 2891336453u;
    uint word = ((state >> ((state >> 28) + 4u)) ^ state) * 277803737u;
    return (word >> 22) ^ word;
}

float weight(int row, int i) {
    return exp((load1(src_values, k, row, i) - load1(src_values, k, row, 0)) / step_temperature);
}

float draw(int row) {
    for (int i = 0; i < k; i++) {
        if (!finite(load1(src_values, k, row, i))) return -1.0;
    }
    int kept = step_top_k == 0u ? k : min(int(step_top_k), k);
    int drawn = 0;
    if (step_temperature > 0.0) {
        float total = 0.0;
        for (int i = 0; i < kept; i++) total += weight(row, i);
        float stayed = 0.0;
        int prefix = 0;
        for (int i = 0; i < kept; i++) {
            if (i > 0 && weight(row, i) < load1(src_penalties, 8, 0, 7)) break;
            stayed += weight(row, i);
            prefix = i + 1;
            if (stayed >= step_top_p * total) break;
        }
        uint at = rows == 1 ? step_rows - 1u : uint(row);
        uint h = pcg((step_position + at) ^ pcg(step_seed_lo ^ pcg(step_seed_hi)));
        float goal = float(h >> 8) / 16777216.0 * stayed;
        float running = 0.0;
        for (int i = 0; i < prefix; i++) {
            running += weight(row, i);
            drawn = i;
            if (running > goal) break;
        }
    }
    return load1(src_ids, k, row, drawn);
}

vec4 value(int line, int col) {
    vec4 v = vec4(0.0);
    for (int i = 0; i < min(LANES, out_cols - col); i++) {
        v += draw(line * out_cols + col + i) * vec4(equal(ivec4(i), ivec4(0, 1, 2, 3)));
    }
    return v;
}
// sample MIN_P bits
