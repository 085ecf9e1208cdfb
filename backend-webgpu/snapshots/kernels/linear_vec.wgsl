// linear_vec Q8_0 Q8_0 subgroups two shuffled vec4 glu bias norm
struct Step {
    position: u32,
    rows: u32,
    top_k: u32,
    top_p: f32,
    temperature: f32,
    seed_lo: u32,
    seed_hi: u32,
    sequence: u32,
    origin: vec3<u32>,
}
struct Params {
    k: u32,
    count: u32,
    first: u32,
    out_cols: u32,
    w_row: u32,
    w_groups: u32,
    w_plane0: u32,
    w_plane1: u32,
    w_plane2: u32,
    w_plane3: u32,
    u_row: u32,
    u_groups: u32,
    u_plane0: u32,
    u_plane1: u32,
    u_plane2: u32,
    u_plane3: u32,
    eps: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> u: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> gamma: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> bias: array<f32>;
@group(0) @binding(7) var<storage, read_write> out: array<f32>;


fn half_value(bits: u32) -> f32 {
    let magnitude = f32(bits & 0x3ffu) * 5.960464477539063e-8;
    let subnormal = select(magnitude, -magnitude, (bits & 0x8000u) != 0u);
    return select(unpack2x16float(bits & 0xffffu).x, subnormal, (bits & 0x7c00u) == 0u);
}

fn half_pair(word: u32) -> vec2<f32> {
    return vec2<f32>(half_value(word & 0xffffu), half_value(word >> 16u));
}

fn half_of(texel: vec4<u32>, i: u32) -> f32 {
    return half_value((texel[i >> 1u] >> ((i & 1u) * 16u)) & 0xffffu);
}

fn twos(word: u32) -> vec4<f32> {
    return vec4<f32>(((vec4<u32>(word) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u)) << vec4<u32>(1u));
}

fn pairs(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u));
}

fn threes(word: u32, bits: u32) -> vec4<f32> {
    let low = (vec4<u32>(word) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u);
    let high = (vec4<u32>(bits) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u);
    return vec4<f32>(low | (high << vec4<u32>(2u)));
}

fn nibbles(word: u32) -> vec4<f32> {
    let whole = bitcast<vec4<f32>>((vec4<u32>(word) & vec4<u32>(15u, 240u, 3840u, 61440u)) | vec4<u32>(0x4b000000u));
    return whole * vec4<f32>(1.0, 0.0625, 0.00390625, 0.000244140625) - vec4<f32>(8388608.0, 524288.0, 32768.0, 2048.0);
}

fn fives(word: u32, bits: u32) -> vec4<f32> {
    let low = (vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    let high = (vec4<u32>(bits) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u);
    return vec4<f32>(low | (high << vec4<u32>(4u)));
}

fn sixes(word: u32, pairs: u32) -> vec4<f32> {
    let low = (vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    let high = (vec4<u32>(pairs) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u);
    return vec4<f32>(low | (high << vec4<u32>(4u)));
}

fn signed_bytes(word: u32) -> vec4<f32> {
    return vec4<f32>(bitcast<vec4<i32>>(vec4<u32>(word) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u));
}
fn safe_tanh(x: f32) -> f32 {
    let nan = (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
    return select(tanh(clamp(x, -15.0, 15.0)), x, nan);
}
fn unary_gelu_tanh(x: f32) -> f32 {
    return 0.5 * x * (1.0 + unary_tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

fn erf(x: f32) -> f32 {
    let a = min(abs(x), 9.0);
    let t = 1.0 / (1.0 + 0.3275911 * a);
    let poly = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
    return sign(x) * (1.0 - poly * exp(-a * a));
}

fn unary_gelu_erf(x: f32) -> f32 {
    return 0.5 * x * (1.0 + erf(x * 0.7071067811865475));
}

fn unary_gelu_quick(x: f32) -> f32 {
    return x * unary_sigmoid(1.702 * x);
}

fn unary_silu(x: f32) -> f32 {
    return x * unary_sigmoid(x);
}

fn unary_relu(x: f32) -> f32 {
    return max(x, 0.0);
}

fn unary_sigmoid(x: f32) -> f32 {
    return 1.0 / (1.0 + exp(min(-x, 87.0)));
}

fn unary_tanh(x: f32) -> f32 {
    return safe_tanh(x);
}

fn unary_exp(x: f32) -> f32 {
    return exp(x);
}

fn unary_log(x: f32) -> f32 {
    return log(x);
}

fn unary_sqrt(x: f32) -> f32 {
    return sqrt(x);
}

fn sine(x: f32, quarters: i32) -> f32 {
    let turns = round(x * 0.6366197723675814);
    let r = ((x - turns * 1.5703125) - turns * 4.837512969970703e-4) - turns * 7.549789954891882e-8;
    let z = r * r;
    let s = r + r * z * ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1);
    let c = 1.0 - 0.5 * z + z * z * ((2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2);
    let quadrant = (i32(turns) + quarters) & 3;
    let value = select(s, c, (quadrant & 1) == 1);
    return select(value, -value, quadrant >= 2);
}

fn unary_sin(x: f32) -> f32 {
    return sine(x, 0);
}

fn unary_cos(x: f32) -> f32 {
    return sine(x, 1);
}

fn unary_abs(x: f32) -> f32 {
    return abs(x);
}

fn unary_neg(x: f32) -> f32 {
    return -x;
}

fn unary_floor(x: f32) -> f32 {
    return floor(x);
}

fn unary_ceil(x: f32) -> f32 {
    return ceil(x);
}

fn unary_softplus(x: f32) -> f32 {
    return max(x, 0.0) + log(1.0 + exp(-abs(x)));
}

fn unary_hardswish(x: f32) -> f32 {
    return x * clamp((x + 3.0) / 6.0, 0.0, 1.0);
}

fn unary_sign(x: f32) -> f32 {
    return sign(x);
}

fn unary_step(x: f32) -> f32 {
    return select(0.0, 1.0, x > 0.0);
}

fn unary_elu(x: f32) -> f32 {
    return select(unary_expm1(min(x, 0.0)), x, x > 0.0);
}

fn unary_hardsigmoid(x: f32) -> f32 {
    return clamp((x + 3.0) / 6.0, 0.0, 1.0);
}

fn unary_expm1(x: f32) -> f32 {
    let tail = x / 5.0 * (1.0 + x / 6.0 * (1.0 + x / 7.0 * (1.0 + x / 8.0)));
    let near = x * (1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0 * (1.0 + tail))));
    return select(exp(x) - 1.0, near, abs(x) < 0.5);
}

fn unary_round(x: f32) -> f32 {
    let whole = trunc(x);
    return whole + select(0.0, sign(x), abs(x - whole) >= 0.5);
}

fn unary_trunc(x: f32) -> f32 {
    return trunc(x);
}

fn unary_none(x: f32) -> f32 {
    return x;
}
alias Group = array<vec4<f32>, 8>;

fn dot32(a: Group, b: Group) -> f32 {
    return dot(a[0], b[0]) + dot(a[1], b[1]) + dot(a[2], b[2]) + dot(a[3], b[3])
        + dot(a[4], b[4]) + dot(a[5], b[5]) + dot(a[6], b[6]) + dot(a[7], b[7]);
}
const SPAN: u32 = 8u;
var<workgroup> reduce_few: array<f32, 2u * 64u / SPAN>;
var<private> reduce_half: u32;

fn reduce_leave(lane: u32, value: f32) -> u32 {
    reduce_half = 64u / SPAN - reduce_half;
    if (lane % SPAN == 0u) {
        reduce_few[reduce_half + lane / SPAN] = value;
    }
    return reduce_half;
}

fn reduce_sums(lane: u32, value: f32) -> u32 {
    var sum = value;
    for (var distance = 1u; distance < SPAN; distance <<= 1u) {
        sum += subgroupShuffleXor(sum, distance);
    }
    return reduce_leave(lane, sum);
}

fn reduce_maxima(lane: u32, value: f32) -> u32 {
    var most = value;
    for (var distance = 1u; distance < SPAN; distance <<= 1u) {
        most = max(most, subgroupShuffleXor(most, distance));
    }
    return reduce_leave(lane, most);
}

fn workgroup_sum(lane: u32, value: f32) -> f32 {
    let first = reduce_sums(lane, value);
    workgroupBarrier();
    var total = reduce_few[first];
    for (var i = 1u; i < 64u / SPAN; i++) {
        total += reduce_few[first + i];
    }
    return total;
}

fn workgroup_max(lane: u32, value: f32) -> f32 {
    let first = reduce_maxima(lane, value);
    workgroupBarrier();
    var highest = reduce_few[first];
    for (var i = 1u; i < 64u / SPAN; i++) {
        highest = max(highest, reduce_few[first + i]);
    }
    return highest;
}
const TOGETHER: u32 = min(4u, 8u);

fn together_sum(own: vec4<f32>) -> vec4<f32> {
    var sum = own;
    for (var apart = 1u; apart < TOGETHER; apart <<= 1u) {
        sum += subgroupShuffleXor(sum, apart);
    }
    return sum;
}

var<workgroup> lanes_sums: array<vec4<f32>, 64u / TOGETHER>;

fn lanes_begin(lane: u32, own: vec4<f32>) -> vec4<f32> {
    let sum = together_sum(own);
    if (4u > TOGETHER && lane % TOGETHER == 0u) {
        lanes_sums[lane / TOGETHER] = sum;
    }
    return sum;
}

fn lanes_meet() {
    if (4u > TOGETHER) {
        workgroupBarrier();
    }
}

fn lanes_end(lane: u32, begun: vec4<f32>) -> vec4<f32> {
    if (4u == TOGETHER) {
        return begun;
    }
    let first = lane / 4u * (4u / TOGETHER);
    var sum = lanes_sums[first];
    for (var i = 1u; i < 4u / TOGETHER; i++) {
        sum += lanes_sums[first + i];
    }
    return sum;
}


fn row_first(cols: u32) -> u32 {
    return 0u;
}


fn x4(i: u32) -> vec4<f32> {
    let at = 0u + row_first(p.k / 4u) + min(i, p.k / 4u - 1u);
    return select(vec4<f32>(0.0), x[at], 4u * i < p.k);
}

fn gamma4(i: u32) -> vec4<f32> {
    return gamma[min(i, p.k / 4u - 1u)];
}

fn own_squares(lane: u32, mean: f32) -> f32 {
    var squares = 0.0;
    for (var i = lane; 4u * i < p.k; i += 64u) {
        let within = vec4<u32>(4u * i) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(p.k);
        let c = select(vec4<f32>(0.0), x4(i) - mean, within);
        squares += dot(c, c);
    }
    return squares;
}

fn deviation(lane: u32, squares: f32) -> f32 {
    return 1.0 / sqrt(workgroup_sum(lane, squares) / f32(p.k) + p.eps);
}

fn norm_begin(lane: u32) -> vec2<f32> {
    return vec2<f32>(0.0, own_squares(lane, 0.0));
}

fn normed4(i: u32, begun: vec2<f32>) -> vec4<f32> {
    return x4(i) * gamma4(i);
}

fn row_begin(lane: u32) -> vec2<f32> {
    return norm_begin(lane);
}

fn row_stage(lane: u32, first: u32, begun: vec2<f32>) {
}

fn row4(g: u32, first: u32, i: u32, begun: vec2<f32>) -> vec4<f32> {
    return normed4(8u * g + i, begun);
}

fn row32(g: u32, first: u32, begun: vec2<f32>) -> Group {
    return Group(
        row4(g, first, 0u, begun), row4(g, first, 1u, begun), row4(g, first, 2u, begun), row4(g, first, 3u, begun),
        row4(g, first, 4u, begun), row4(g, first, 5u, begun), row4(g, first, 6u, begun), row4(g, first, 7u, begun));
}

fn row_scale(lane: u32, begun: vec2<f32>) -> f32 {
    return deviation(lane, begun.y);
}
fn w_scales(group: u32) -> vec4<f32> {
    let block = group >> 0;
    let d = half_of(w[p.w_plane1 + (block >> 3u)], block & 7u);
    return vec4<f32>(d, 0.0, d, 0.0);
}

fn w_value(q: vec4<f32>, scale: vec2<f32>) -> vec4<f32> {
    return scale.x * (q - 0.0);
}

fn w_decode32(group: u32) -> array<vec4<f32>, 8> {
    let a = w[p.w_plane0 + group * 2u];
    let b = w[p.w_plane0 + group * 2u + 1u];
    let s = w_scales(group);
    return array<vec4<f32>, 8>(
        w_value(signed_bytes(a.x), s.xy), w_value(signed_bytes(a.y), s.xy),
        w_value(signed_bytes(a.z), s.xy), w_value(signed_bytes(a.w), s.xy),
        w_value(signed_bytes(b.x), s.zw), w_value(signed_bytes(b.y), s.zw),
        w_value(signed_bytes(b.z), s.zw), w_value(signed_bytes(b.w), s.zw));
}

fn w_decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return w_decode32(row * p.w_groups + group);
}

fn u_scales(group: u32) -> vec4<f32> {
    let block = group >> 0;
    let d = half_of(u[p.u_plane1 + (block >> 3u)], block & 7u);
    return vec4<f32>(d, 0.0, d, 0.0);
}

fn u_value(q: vec4<f32>, scale: vec2<f32>) -> vec4<f32> {
    return scale.x * (q - 0.0);
}

fn u_decode32(group: u32) -> array<vec4<f32>, 8> {
    let a = u[p.u_plane0 + group * 2u];
    let b = u[p.u_plane0 + group * 2u + 1u];
    let s = u_scales(group);
    return array<vec4<f32>, 8>(
        u_value(signed_bytes(a.x), s.xy), u_value(signed_bytes(a.y), s.xy),
        u_value(signed_bytes(a.z), s.xy), u_value(signed_bytes(a.w), s.xy),
        u_value(signed_bytes(b.x), s.zw), u_value(signed_bytes(b.y), s.zw),
        u_value(signed_bytes(b.z), s.zw), u_value(signed_bytes(b.w), s.zw));
}

fn u_decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return u_decode32(row * p.u_groups + group);
}


struct Rest {
    bias: f32,
    bias_up: f32,
    residual: f32,
}

fn rest_of(row: u32, col: u32) -> Rest {
    var rest: Rest;
    rest.bias = bias[col];
    rest.bias_up = bias[col + p.out_cols];
    return rest;
}

fn ended(products: vec4<f32>, own: u32, rest: Rest) -> f32 {
    var value = unary_silu(products[own] + rest.bias) * (products[own + 2u] + rest.bias_up);
    return value + rest.residual;
}

@compute @workgroup_size(64u)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let begun = row_begin(lane);
    let n = ((wid.y * groups.x + wid.x) * (64u / 4u) + lane / 4u) * 2u;
    let last = p.count - 1u;
    let l = lane % 4u;
    let own = l % 2u;
    let col = p.first + min(n + own, last);
    let rest = rest_of(0u, col);
    var acc = vec4<f32>(0.0);
    for (var first = 0u; first < p.w_groups; first += 2u) {
        row_stage(lane, first, begun);
        let end = min(first + 2u, p.w_groups);
        for (var g = first + l; g < end; g += 4u) {
            let x32 = row32(g, first, begun);
            let a = dot32(w_decode_row(p.w_row + min(n, last), g), x32);
            let b = dot32(w_decode_row(p.w_row + min(n + 1u, last), g), x32);
            let up = dot32(u_decode_row(p.u_row + min(n, last), g), x32);
            acc += vec4<f32>(a, b, up, dot32(u_decode_row(p.u_row + min(n + 1u, last), g), x32));
        }
    }
    let sum = lanes_begin(lane, acc);
    let scale = row_scale(lane, begun);
    if (l < 2u && n + l <= last) {
        out[col] = ended(lanes_end(lane, sum) * scale, own, rest);
    }
}
