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
    int m;
    int k;
    int a0;
    int a1;
    int b0;
    int b1;
    int dim0;
    int dim1;
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
#define src_a t0
uniform usampler2D t1;
#define src_b t1

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

ivec2 at_a, at0, at1, at2, at3;

vec4 part(int i) {
    vec4 x = group4(src_a, k, at_a, i);
    return vec4(
        dot(x, group4(src_b, k, at0, i)),
        dot(x, group4(src_b, k, at1, i)),
        dot(x, group4(src_b, k, at2, i)),
        dot(x, group4(src_b, k, at3, i))
    );
}

vec4 value(int row, int col) {
    int i0 = row / (dim1 * m);
    int i1 = row / m % dim1;
    int i2 = row % m;
    int a_row = (i0 * a0 / dim0 * a1 + i1 * a1 / dim1) * m + i2;
    int b_row = (i0 * b0 / dim0 * b1 + i1 * b1 / dim1) * out_cols;
    int groups = (k + 31) >> 5;
    vec4 sum = vec4(0.0);
    for (int group = 0; group < groups; group++) {
        at_a = group_at(k, a_row, group);
        at0 = group_at(k, b_row + col, group);
        at1 = group_at(k, b_row + min(col + 1, out_cols - 1), group);
        at2 = group_at(k, b_row + min(col + 2, out_cols - 1), group);
        at3 = group_at(k, b_row + min(col + 3, out_cols - 1), group);
        sum += ((part(0) + part(1)) + (part(2) + part(3))) + ((part(4) + part(5)) + (part(6) + part(7)));
    }
    return sum;
}
// matmul WHOLE_GROUPS bits
