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
    float eps;
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
#define src_gamma t1
uniform usampler2D t2;
#define src_residual t2

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

ivec2 group_at(int cols, int row, int group) {
    return fold((row * cols + 32 * group) / LANES);
}

#define group4(source, cols, at, i) fetch(source, (at) + ivec2(i, 0))

vec4 keep4(vec4 v, int cols, ivec2 at, int i) {
    return v;
}

float total(vec4 v) {
    return (v.x + v.y) + (v.z + v.w);
}

void row_stats(int cols, int row, float epsilon, out float mean, out float factor) {
    int groups = (cols + 31) >> 5;
    float size = float(cols);
    float shift = 0.0;
    vec4 sum = vec4(0.0);
    vec4 squares = vec4(0.0);
    for (int group = 0; group < groups; group++) {
        ivec2 at = group_at(cols, row, group);
        vec4 d0 = keep4(group4(src_x, cols, at, 0) - shift, cols, at, 0);
        vec4 d1 = keep4(group4(src_x, cols, at, 1) - shift, cols, at, 1);
        vec4 d2 = keep4(group4(src_x, cols, at, 2) - shift, cols, at, 2);
        vec4 d3 = keep4(group4(src_x, cols, at, 3) - shift, cols, at, 3);
        vec4 d4 = keep4(group4(src_x, cols, at, 4) - shift, cols, at, 4);
        vec4 d5 = keep4(group4(src_x, cols, at, 5) - shift, cols, at, 5);
        vec4 d6 = keep4(group4(src_x, cols, at, 6) - shift, cols, at, 6);
        vec4 d7 = keep4(group4(src_x, cols, at, 7) - shift, cols, at, 7);
        sum += ((d0 + d1) + (d2 + d3)) + ((d4 + d5) + (d6 + d7));
        squares += ((d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)) + ((d4 * d4 + d5 * d5) + (d6 * d6 + d7 * d7));
    }
    mean = 0.0;
    float variance = total(squares) / size;
    factor = 1.0 / max(sqrt(total(squares)), epsilon);
}

vec4 value(int row, int col) {
    float mean;
    float factor;
    row_stats(out_cols, row, eps, mean, factor);
    vec4 v = (lanes(src_x, out_cols, row, col) - mean) * factor * lanes(src_gamma, out_cols, 0, col);
    v += lanes(src_residual, out_cols, row, col);
    return v;
}
// norm L2 WHOLE_GROUPS RESIDUAL bits
