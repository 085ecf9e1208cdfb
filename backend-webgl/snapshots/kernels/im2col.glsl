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
    int channels;
    int image0;
    int image1;
    int kernel0;
    int kernel1;
    int places0;
    int places1;
    int stride0;
    int stride1;
    int before0;
    int before1;
    int dilation0;
    int dilation1;
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

float element(int row, int col);

vec4 value(int row, int col) {
    vec4 v = vec4(element(row, col), 0.0, 0.0, 0.0);
    if (col + 1 < out_cols) v.y = element(row, col + 1);
    if (col + 2 < out_cols) v.z = element(row, col + 2);
    if (col + 3 < out_cols) v.w = element(row, col + 3);
    return v;
}


float element(int row, int col) {
    int channel = col / (kernel0 * kernel1);
    int y = row / places1 % places0 * stride0 + col / kernel1 % kernel0 * dilation0 - before0;
    int x = row % places1 * stride1 + col % kernel1 * dilation1 - before1;
    if (y < 0 || y >= image0 || x < 0 || x >= image1) return 0.0;
    int plane = row / (places0 * places1) * channels + channel;
    return load1(src_x, image1, plane * image0 + y, x);
}
// im2col bits
