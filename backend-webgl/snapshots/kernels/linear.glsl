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
#define ACT act_none
layout(std140) uniform Params {
    int out_rows;
    int out_cols;
    int append_unit;
    int append_max;
    int plane0_a;
    int plane1_a;
    int plane2_a;
    int plane3_a;
    int groups_a;
    int k;
    float eps;
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
uniform usampler2D t1;
#define src_gamma t1

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
layout(location = 1) out TEXEL result2;
layout(location = 2) out TEXEL result3;

int append_first() {
    return int(step_position) * append_unit;
}

vec4 value(int row, int col);
vec4 value2(int row, int col);
vec4 value3(int row, int col);

void main() {
    int texel = fragment();
    int row_texels = (out_cols + LANES - 1) / LANES;
    int row = texel / row_texels;
    int col = (texel - row * row_texels) * LANES;
    int count = min(int(step_rows), append_max) * append_unit;
    int first = append_first();
    if (row < first || row >= first + count || row >= out_rows) discard;
    result = texel_of(keep(value(row, col), col, out_cols));
    result2 = texel_of(keep(value2(row, col), col, out_cols));
    result3 = texel_of(keep(value3(row, col), col, out_cols));
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

vec4 act_none(vec4 x) {
    return x;
}

vec4 act_sigmoid(vec4 x) {
    vec4 e = exp(-abs(x));
    return mix(e, vec4(1.0), greaterThanEqual(x, vec4(0.0))) / (1.0 + e);
}

vec4 act_tanh(vec4 x) {
    vec4 e = exp(-2.0 * abs(x));
    vec4 s = x * x;
    vec4 near = x * (1.0 + s * (-1.0 / 3.0 + s * (2.0 / 15.0 - s * (17.0 / 315.0))));
    return mix(sign(x) * (1.0 - e) / (1.0 + e), near, lessThan(abs(x), vec4(0.1)));
}

vec4 erf(vec4 x) {
    vec4 a = abs(x);
    vec4 t = 1.0 / (1.0 + 0.3275911 * a);
    vec4 p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    vec4 s = x * x;
    vec4 near = x * 1.1283791670955126 * (1.0 - s * (1.0 / 3.0 - s * (0.1 - s * (1.0 / 42.0 - s / 216.0))));
    return mix(sign(x) * (1.0 - p * exp(-min(s, 80.0))), near, lessThan(a, vec4(0.5)));
}

vec4 act_gelu_tanh(vec4 x) {
    vec4 c = clamp(x, -20.0, 20.0);
    return 0.5 * x * (1.0 + act_tanh(0.7978845608028654 * c * (1.0 + 0.044715 * c * c)));
}

vec4 act_gelu_erf(vec4 x) {
    return 0.5 * x * (1.0 + erf(x * 0.7071067811865476));
}

vec4 act_gelu_quick(vec4 x) {
    return x * act_sigmoid(1.702 * x);
}

vec4 act_silu(vec4 x) {
    return x * act_sigmoid(x);
}

vec4 act_relu(vec4 x) {
    return max(x, 0.0);
}

vec4 act_exp(vec4 x) {
    return exp(x);
}

vec4 act_log(vec4 x) {
    return log(x);
}

vec4 act_sqrt(vec4 x) {
    return sqrt(x);
}

void circle(vec4 x, out vec4 s, out vec4 c, out ivec4 quadrant) {
    vec4 n = floor(x * 0.6366197723675814 + 0.5);
    vec4 r = ((x - n * 1.5703125) - n * 4.8375129699707031e-4) - n * 7.5497899548918821e-8;
    vec4 z = r * r;
    s = r * (1.0 - z * (1.0 / 6.0 - z * (1.0 / 120.0 - z * (1.0 / 5040.0 - z / 362880.0))));
    c = 1.0 - z * (0.5 - z * (1.0 / 24.0 - z * (1.0 / 720.0 - z / 40320.0)));
    quadrant = ivec4(n) & 3;
}

vec4 act_sin(vec4 x) {
    vec4 s;
    vec4 c;
    ivec4 q;
    circle(x, s, c, q);
    vec4 v = mix(s, c, equal(q & 1, ivec4(1)));
    return mix(v, -v, greaterThanEqual(q, ivec4(2)));
}

vec4 act_cos(vec4 x) {
    vec4 s;
    vec4 c;
    ivec4 q;
    circle(x, s, c, q);
    vec4 v = mix(c, s, equal(q & 1, ivec4(1)));
    return mix(v, -v, equal((q + 1) & 2, ivec4(2)));
}

vec4 act_abs(vec4 x) {
    return abs(x);
}

vec4 act_neg(vec4 x) {
    return -x;
}

vec4 act_floor(vec4 x) {
    return floor(x);
}

vec4 act_ceil(vec4 x) {
    return ceil(x);
}

vec4 act_softplus(vec4 x) {
    return max(x, 0.0) + log(1.0 + exp(-abs(x)));
}

vec4 act_hardswish(vec4 x) {
    return x * clamp((x + 3.0) / 6.0, 0.0, 1.0);
}

vec4 act_sign(vec4 x) {
    return sign(x);
}

vec4 act_step(vec4 x) {
    return vec4(greaterThan(x, vec4(0.0)));
}

vec4 act_expm1(vec4 x) {
    vec4 tail = x / 5.0 * (1.0 + x / 6.0 * (1.0 + x / 7.0 * (1.0 + x / 8.0)));
    vec4 near = x * (1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0 * (1.0 + tail))));
    return mix(exp(x) - 1.0, near, lessThan(abs(x), vec4(0.5)));
}

vec4 act_elu(vec4 x) {
    return mix(act_expm1(min(x, 0.0)), x, greaterThan(x, vec4(0.0)));
}

vec4 act_hardsigmoid(vec4 x) {
    return clamp((x + 3.0) / 6.0, 0.0, 1.0);
}

vec4 act_round(vec4 x) {
    vec4 whole = trunc(x);
    return whole + sign(x) * vec4(greaterThanEqual(abs(x - whole), vec4(0.5)));
}

vec4 act_trunc(vec4 x) {
    return trunc(x);
}

vec4 finish(int row, int col, vec4 sum, vec4 up) {
    sum = ACT(sum);
    return sum;
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
    factor = 1.0 / sqrt(variance + epsilon);
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



vec4 x0, x1, x2, x3, x4, x5, x6, x7;
float sum_low, sum_high;

float product(int weight_row, int group) {
    vec4 q0, q1, q2, q3, q4, q5, q6, q7, affine;
    a_levels32(min(weight_row, weight_rows - 1) * groups_a + group, q0, q1, q2, q3, q4, q5, q6, q7, affine);
    vec4 low = (q0 * x0 + q1 * x1) + (q2 * x2 + q3 * x3);
    vec4 high = (q4 * x4 + q5 * x5) + (q6 * x6 + q7 * x7);
    vec4 both = affine.x * low + affine.z * high;
    return total(both) + (affine.y * sum_low + affine.w * sum_high);
}

vec4 products(int col, int group) {
    return vec4(product(col, group), product(col + 1, group), product(col + 2, group), product(col + 3, group));
}

float norm_mean;
float norm_factor;
vec4 squares = vec4(0.0);

vec4 operand(ivec2 at, ivec2 norm_at, int i) {
    vec4 x = group4(src_x, k, at, i);
    vec4 gamma = group4(src_gamma, k, norm_at, i);
    squares += x * x;
    return x * gamma;
}

vec4 values;
vec4 queries;

vec4 value2(int row, int col) {
    return values;
}

vec4 value3(int row, int col) {
    return queries;
}

vec4 value(int row, int col) {
    row -= append_first();
    int groups = (k + 31) >> 5;
    vec4 sum = vec4(0.0);
    vec4 second = vec4(0.0);
    vec4 third = vec4(0.0);
    int first = 0;
    for (int group = first; group < groups; group++) {
        ivec2 at = group_at(k, row, group);
        ivec2 norm_at = group_at(k, 0, group);
        x0 = operand(at, norm_at, 0);
        x1 = operand(at, norm_at, 1);
        x2 = operand(at, norm_at, 2);
        x3 = operand(at, norm_at, 3);
        x4 = operand(at, norm_at, 4);
        x5 = operand(at, norm_at, 5);
        x6 = operand(at, norm_at, 6);
        x7 = operand(at, norm_at, 7);
        sum_low = total((x0 + x1) + (x2 + x3));
        sum_high = total((x4 + x5) + (x6 + x7));
        sum += products(col, group);
        second += products(out_cols + col, group);
        third += products(2 * out_cols + col, group);
    }
    float factor = 1.0 / sqrt(total(squares) / float(k) + eps);
    sum *= factor;
    second *= factor;
    third *= factor;
    queries = finish(row, col, sum, vec4(1.0));
    values = finish(row, 2 * out_cols + col, third, vec4(1.0));
    return finish(row, out_cols + col, second, vec4(1.0));
}
// linear Q8_0 APPEND QKV TWO THREE WHOLE_GROUPS NORM act_none bits
