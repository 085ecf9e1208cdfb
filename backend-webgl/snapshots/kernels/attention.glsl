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
    int causal;
    int cached;
    int window;
    float scale;
    float softcap;
    int queries;
    int heads;
    int heads_kv;
    int head_dim;
    int keys;
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
#define src_scores t0
uniform usampler2D t1;
#define src_v t1
uniform usampler2D t2;
#define src_sinks t2

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
const float LOWEST = -3.0e38;

void visible(int i, int m, int n, out int start, out int end) {
    end = cached != 0 ? min(int(step_position) + int(step_rows), n) : n;
    int at = cached != 0 ? int(step_position) + i : max(n + i - m, 0);
    int before = causal != 0 ? window - 1 : window / 2;
    if (causal != 0) end = min(end, at + 1);
    else if (window > 0) end = min(end, at + before + 1);
    start = window > 0 ? max(at - before, 0) : 0;
    start = min(start, end);
}

vec4 cap(vec4 score) {
    return softcap > 0.0 ? softcap * act_tanh(score / softcap) : score;
}


vec4 half_floats(uvec4 h) {
    uvec4 magnitude = h & 0x7fffu;
    uvec4 bits = (magnitude << 13) + 0x38000000u + 0x38000000u * uvec4(greaterThanEqual(magnitude, uvec4(0x7c00u)));
    vec4 tiny = uintBitsToFloat(bits + 0x800000u) - 6.103515625e-5;
    vec4 size = mix(uintBitsToFloat(bits), tiny, lessThan(magnitude, uvec4(0x400u)));
    return uintBitsToFloat(floatBitsToUint(size) | ((h & 0x8000u) << 16));
}
vec4 src_v_quad(int row, int i) {
    uvec4 texel = texelFetch(src_v, fold(row * 24 + (i >> 1)), 0);
    uvec2 words = (i & 1) == 0 ? texel.xy : texel.zw;
    return half_floats(uvec4(words.x & 0xffffu, words.x >> 16u, words.y & 0xffffu, words.y >> 16u));
}


vec4 values_of(int key, int head_kv, int channel) {
    int cols = heads_kv * head_dim;
    int col = head_kv * head_dim + channel;
    return src_v_quad(key, col >> 2);
}

float largest;
vec4 total = vec4(0.0);
vec4 sum = vec4(0.0);

void add(vec4 weight, bvec4 seen, int key, int last, int head_kv, int channel) {
    sum += weight.x * mix(vec4(0.0), values_of(min(key, last), head_kv, channel), bvec4(seen.x));
    sum += weight.y * mix(vec4(0.0), values_of(min(key + 1, last), head_kv, channel), bvec4(seen.y));
    sum += weight.z * mix(vec4(0.0), values_of(min(key + 2, last), head_kv, channel), bvec4(seen.z));
    sum += weight.w * mix(vec4(0.0), values_of(min(key + 3, last), head_kv, channel), bvec4(seen.w));
}

vec4 weights_of(vec4 scores, bvec4 seen) {
    return mix(vec4(0.0), exp(max(scores - largest, -100.0)), seen);
}

vec4 weighted(int query, int head, int channel) {
    int start;
    int end;
    visible(query, queries, keys, start, end);
    if (start >= end) return vec4(0.0);
    int row = query * heads + head;
    int head_kv = head * heads_kv / heads;
    int last = (end - 1) >> 2;
    sum = vec4(0.0);
    largest = load1(src_sinks, heads, 0, head);
    total = vec4(1.0, 0.0, 0.0, 0.0);
    for (int c4 = start >> 2; c4 <= last; c4 += 2) {
        int key = 4 * c4;
        bvec4 seen = inside(key, start, end);
        bvec4 seen2 = inside(key + 4, start, end);
        vec4 a = mix(vec4(LOWEST), load4(src_scores, keys, row, c4), seen);
        vec4 b = mix(vec4(LOWEST), load4(src_scores, keys, row, min(c4 + 1, last)), seen2);
        vec4 four = max(a, b);
        float before = largest;
        largest = max(before, max(max(four.x, four.y), max(four.z, four.w)));
        float scale_down = exp(max(before - largest, -100.0));
        sum *= scale_down;
        total *= scale_down;
        a = weights_of(a, seen);
        b = weights_of(b, seen2);
        total += a + b;
        add(a, seen, key, end - 1, head_kv, channel);
        add(b, seen2, key + 4, end - 1, head_kv, channel);
    }
    return sum / dot(total, vec4(1.0));
}

vec4 at_column(int row, int col) {
    int head = col / head_dim;
    return weighted(row, head, col - head * head_dim);
}

vec4 value(int row, int col) {
    vec4 v = at_column(row, col);
    return v;
}
// attention f16 ALIGNED BLOCKS SINKS bits
