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
    int blocks;
    int apart;
    int x_rows;
    int block_line;
    int plane0_a;
    int plane1_a;
    int plane2_a;
    int plane3_a;
    int groups_a;
    int k;
    int weight_rows;
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
#define EACH(f) \
    f(0, row0, sum0, at0) f(1, row1, sum1, at1) f(2, row2, sum2, at2) f(3, row3, sum3, at3) \
    f(4, row4, sum4, at4) f(5, row5, sum5, at5) f(6, row6, sum6, at6) f(7, row7, sum7, at7)

ivec2 block_of(int texel) {
    int line = texel / block_line;
    int strip = line / blocks;
    return ivec2(line - strip * blocks, strip * block_line + texel - line * block_line);
}

int block_texel(int block, int col_texel) {
    int strip = col_texel / block_line;
    return (strip * blocks + block) * block_line + col_texel - strip * block_line;
}


vec4 half_floats(uvec4 h) {
    uvec4 magnitude = h & 0x7fffu;
    uvec4 bits = (magnitude << 13) + 0x38000000u + 0x38000000u * uvec4(greaterThanEqual(magnitude, uvec4(0x7c00u)));
    vec4 tiny = uintBitsToFloat(bits + 0x800000u) - 6.103515625e-5;
    vec4 size = mix(uintBitsToFloat(bits), tiny, lessThan(magnitude, uvec4(0x400u)));
    return uintBitsToFloat(floatBitsToUint(size) | ((h & 0x8000u) << 16));
}

float half_float(uint h) {
    return half_floats(uvec4(h)).x;
}

vec2 half_pair(uint word) {
    return half_floats(uvec4(word & 0xffffu, word >> 16, 0u, 0u)).xy;
}

uint word_of(uvec4 texel, int i) {
    return texel[i];
}

uint half_of(uint word, int i) {
    return (word >> ((i & 1) << 4)) & 0xffffu;
}

vec4 level(uvec4 fraction) {
    return uintBitsToFloat(fraction | 0x3f800000u);
}

vec4 nibbles(uint word) {
    return level((uvec4(word) << uvec4(19, 15, 11, 7)) & 0x780000u);
}

vec4 fifths(uint word, uint bits) {
    uvec4 low = (uvec4(word) << uvec4(18, 14, 10, 6)) & 0x3c0000u;
    return level(low | ((uvec4(bits) << uvec4(22, 21, 20, 19)) & 0x400000u));
}

vec4 signed_bytes(uint word) {
    uint bytes = word ^ 0x80808080u;
    return level(uvec4(bytes << 15, bytes << 7, bytes >> 1, bytes >> 9) & 0x7f8000u);
}
uniform usampler2DArray weights_a;

uvec4 a_weight_texel(int i) {
    int line = i >> WEIGHT_LINE_SHIFT;
    ivec3 at = ivec3(i & (WEIGHT_LINE - 1), line & (WEIGHT_PAGE - 1), line >> WEIGHT_PAGE_SHIFT);
    return texelFetch(weights_a, at, 0);
}

uint a_weight_word(int plane, int i) {
    return word_of(a_weight_texel(plane + (i >> 2)), i & 3);
}

float a_weight_half(int plane, int i) {
    return half_float(half_of(a_weight_word(plane, i >> 1), i));
}

void a_levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
);

void a_decode32(
    int group, out vec4 w0, out vec4 w1, out vec4 w2, out vec4 w3, out vec4 w4, out vec4 w5, out vec4 w6, out vec4 w7
) {
    vec4 affine;
    a_levels32(group, w0, w1, w2, w3, w4, w5, w6, w7, affine);
    w0 = affine.x * w0 + affine.y;
    w1 = affine.x * w1 + affine.y;
    w2 = affine.x * w2 + affine.y;
    w3 = affine.x * w3 + affine.y;
    w4 = affine.z * w4 + affine.w;
    w5 = affine.z * w5 + affine.w;
    w6 = affine.z * w6 + affine.w;
    w7 = affine.z * w7 + affine.w;
}

vec4 a_scales(int group) {
    float d = a_weight_half(plane1_a, group >> 0);
    return vec4(d, 0.0, d, 0.0);
}

void a_levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    vec4 s = a_scales(group);
    affine = vec4(256.0, -384.0, 256.0, -384.0) * s.xxzz;
    uvec4 t = a_weight_texel(plane0_a + 2 * group);
    q0 = signed_bytes(t.x);
    q1 = signed_bytes(t.y);
    q2 = signed_bytes(t.z);
    q3 = signed_bytes(t.w);
    t = a_weight_texel(plane0_a + 2 * group + 1);
    q4 = signed_bytes(t.x);
    q5 = signed_bytes(t.y);
    q6 = signed_bytes(t.z);
    q7 = signed_bytes(t.w);
}


#define DECLARE(i, row, sum, at) layout(location = i) out TEXEL row; vec4 sum = vec4(0.0); ivec2 at;
#define FIND(i, row, sum, at) at = group_at(k, x_first + min(block + i * apart, x_rows - 1), group);
#define ADD(j, row, sum, at) sum += group4(src_x, k, at, i) * w;
#define KEEP(i, row, sum, at) row = texel_of(keep(sum, col, weight_rows));

EACH(DECLARE)

void add(int i, vec4 a, vec4 b, vec4 c, vec4 d) {
    mat4 w = mat4(a, b, c, d);
    EACH(ADD)
}

void main() {
    ivec2 place = block_of(fragment());
    int block = place.x;
    int col = place.y * LANES;
    if (col >= weight_rows) discard;
    int groups = (k + 31) >> 5;
    const int x_first = 0;
    vec4 a0, a1, a2, a3, a4, a5, a6, a7;
    vec4 b0, b1, b2, b3, b4, b5, b6, b7;
    vec4 c0, c1, c2, c3, c4, c5, c6, c7;
    vec4 d0, d1, d2, d3, d4, d5, d6, d7;
    for (int group = 0; group < groups; group++) {
        a_decode32(col * groups_a + group, a0, a1, a2, a3, a4, a5, a6, a7);
        int last = weight_rows - 1;
        a_decode32(min(col + 1, last) * groups_a + group, b0, b1, b2, b3, b4, b5, b6, b7);
        a_decode32(min(col + 2, last) * groups_a + group, c0, c1, c2, c3, c4, c5, c6, c7);
        a_decode32(min(col + 3, last) * groups_a + group, d0, d1, d2, d3, d4, d5, d6, d7);
        EACH(FIND)
        add(0, a0, b0, c0, d0);
        add(1, a1, b1, c1, d1);
        add(2, a2, b2, c2, d2);
        add(3, a3, b3, c3, d3);
        add(4, a4, b4, c4, d4);
        add(5, a5, b5, c5, d5);
        add(6, a6, b6, c6, d6);
        add(7, a7, b7, c7, d7);
    }
    EACH(KEEP)
}
// linear_block Q8_0 EIGHT WHOLE_GROUPS bits
