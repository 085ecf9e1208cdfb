// linear_bytes Q8_0 Q8_0 glu bias
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
    x_groups: u32,
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
    m: u32,
    x0: u32,
    x1: u32,
    b0: u32,
    b1: u32,
    out0: u32,
    out1: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> bytes: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> u: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> bias: array<f32>;
@group(0) @binding(6) var<storage, read_write> out: array<f32>;


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

struct Integers {
    low: vec4<u32>,
    high: vec4<u32>,
    scales: vec2<f32>,
    offsets: vec2<f32>,
}

fn nibble_bytes(word: u32) -> vec2<u32> {
    let halves = vec2<u32>(word & 0xffffu, word >> 16u);
    let pairs = (halves | (halves << vec2<u32>(8u))) & vec2<u32>(0x00ff00ffu);
    return (pairs | (pairs << vec2<u32>(4u))) & vec2<u32>(0x0f0f0f0fu);
}

fn bit_bytes(bits: u32, place: u32) -> vec2<u32> {
    let four = vec2<u32>(bits & 15u, (bits >> 4u) & 15u);
    return ((four * vec2<u32>(0x00204081u)) & vec2<u32>(0x01010101u)) << vec2<u32>(place);
}

fn pair_bytes(pairs: u32, place: u32) -> vec2<u32> {
    let four = vec2<u32>(pairs & 255u, (pairs >> 8u) & 255u);
    let each = (four | (four << vec2<u32>(6u)) | (four << vec2<u32>(12u)) | (four << vec2<u32>(18u))) & vec2<u32>(0x03030303u);
    return each << vec2<u32>(place);
}
fn dot16(a: vec4<u32>, b: vec4<u32>) -> i32 {
    return dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
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

fn batch_rows(z: u32) -> vec2<u32> {
    let outer = z / p.out1;
    let inner = z % p.out1;
    return vec2<u32>(
        ((outer * p.x0 / p.out0) * p.x1 + inner * p.x1 / p.out1) * p.m,
        p.w_row + ((outer * p.b0 / p.out0) * p.b1 + inner * p.b1 / p.out1) * p.count);
}

fn store(z: u32, row: u32, n: u32, apart: u32, sums: vec4<f32>) {
    if (row >= p.m) {
        return;
    }
    for (var c = 0u; c < 2u; c++) {
        let local = n + apart * c;
        if (local >= p.count) {
            continue;
        }
        let col = p.first + local;
        let at = (z * p.m + row) * p.out_cols + col;
        var value = sums[c];
        value += bias[col];
        value = unary_silu(value);
        var upper = sums[c + 2u];
        upper += bias[col + p.out_cols];
        value *= upper;
        out[at] = value;
    }
}
fn w_scales(group: u32) -> vec4<f32> {
    let block = group >> 0;
    let d = half_of(w[p.w_plane1 + (block >> 3u)], block & 7u);
    return vec4<f32>(d, 0.0, d, 0.0);
}

fn w_integers(group: u32) -> Integers {
    let s = w_scales(group);
    let low = w[p.w_plane0 + group * 2u];
    let high = w[p.w_plane0 + group * 2u + 1u];
    return Integers(low, high, s.xz, -0.0 * s.xz);
}

fn u_scales(group: u32) -> vec4<f32> {
    let block = group >> 0;
    let d = half_of(u[p.u_plane1 + (block >> 3u)], block & 7u);
    return vec4<f32>(d, 0.0, d, 0.0);
}

fn u_integers(group: u32) -> Integers {
    let s = u_scales(group);
    let low = u[p.u_plane0 + group * 2u];
    let high = u[p.u_plane0 + group * 2u + 1u];
    return Integers(low, high, s.xz, -0.0 * s.xz);
}

var<workgroup> tile_x: array<vec4<u32>, 128>;
var<workgroup> tile_w: array<vec4<u32>, 128>;
var<workgroup> scales_x: array<vec4<f32>, 64>;
var<workgroup> scales_w: array<vec4<f32>, 64>;

fn bring_w(lane: u32, w_row: u32, up_row: u32, g: u32) -> Integers {
    if (lane >= 32u) {
        return u_integers(up_row * p.u_groups + g);
    }
    return w_integers(w_row * p.w_groups + g);
}

fn product(x: array<vec4<u32>, 2>, x_scales: vec4<f32>, w: array<vec4<u32>, 2>, w_scales: vec4<f32>) -> f32 {
    let low = dot16(x[0], w[0]);
    let high = dot16(x[1], w[1]);
    if (true) {
        return x_scales.x * w_scales.x * f32(low + high) + (x_scales.y + x_scales.z) * w_scales.z;
    }
    return x_scales.x * (w_scales.x * f32(low) + w_scales.y * f32(high)) + x_scales.y * w_scales.z + x_scales.z * w_scales.w;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let wid = group_id + step.origin;
    let n0 = wid.x * (16u * 2u);
    let m0 = wid.y * 64u;
    let begins = batch_rows(wid.z);
    let col = min(n0 + lane % (16u * 2u), p.count - 1u);
    let w_row = begins.y + col;
    let up_row = p.u_row + col;
    let x_at = 3u * (begins.x + min(m0 + lane, p.m - 1u)) * p.x_groups;
    let tx = lane % 8u;
    let ty = lane / 8u;
    var acc: array<vec4<f32>, 16>;
    var next_w = bring_w(lane, w_row, up_row, 0u);
    var next_x = array<vec4<u32>, 3>(bytes[x_at], bytes[x_at + 1u], bytes[x_at + 2u]);
    for (var g = 0u; g < p.x_groups; g++) {
        tile_w[lane] = next_w.low;
        tile_w[lane + 64u] = next_w.high;
        scales_w[lane] = vec4<f32>(next_w.scales, next_w.offsets);
        tile_x[lane] = next_x[0];
        tile_x[lane + 64u] = next_x[1];
        scales_x[lane] = bitcast<vec4<f32>>(next_x[2]);
        if (g + 1u < p.x_groups) {
            next_w = bring_w(lane, w_row, up_row, g + 1u);
            let at = x_at + 3u * (g + 1u);
            next_x = array<vec4<u32>, 3>(bytes[at], bytes[at + 1u], bytes[at + 2u]);
        }
        workgroupBarrier();
        var x = array<array<vec4<u32>, 2>, 8>();
        var x_scales = array<vec4<f32>, 8>();
        x[0u] = array<vec4<u32>, 2>(tile_x[ty + 8u * 0u], tile_x[ty + 8u * 0u + 64u]);
        x_scales[0u] = scales_x[ty + 8u * 0u];
        x[1u] = array<vec4<u32>, 2>(tile_x[ty + 8u * 1u], tile_x[ty + 8u * 1u + 64u]);
        x_scales[1u] = scales_x[ty + 8u * 1u];
        x[2u] = array<vec4<u32>, 2>(tile_x[ty + 8u * 2u], tile_x[ty + 8u * 2u + 64u]);
        x_scales[2u] = scales_x[ty + 8u * 2u];
        x[3u] = array<vec4<u32>, 2>(tile_x[ty + 8u * 3u], tile_x[ty + 8u * 3u + 64u]);
        x_scales[3u] = scales_x[ty + 8u * 3u];
        x[4u] = array<vec4<u32>, 2>(tile_x[ty + 8u * 4u], tile_x[ty + 8u * 4u + 64u]);
        x_scales[4u] = scales_x[ty + 8u * 4u];
        x[5u] = array<vec4<u32>, 2>(tile_x[ty + 8u * 5u], tile_x[ty + 8u * 5u + 64u]);
        x_scales[5u] = scales_x[ty + 8u * 5u];
        x[6u] = array<vec4<u32>, 2>(tile_x[ty + 8u * 6u], tile_x[ty + 8u * 6u + 64u]);
        x_scales[6u] = scales_x[ty + 8u * 6u];
        x[7u] = array<vec4<u32>, 2>(tile_x[ty + 8u * 7u], tile_x[ty + 8u * 7u + 64u]);
        x_scales[7u] = scales_x[ty + 8u * 7u];
        {
            let w = array<vec4<u32>, 2>(tile_w[tx + 8u * 0u], tile_w[tx + 8u * 0u + 64u]);
            let w_scales = scales_w[tx + 8u * 0u];
            acc[2u * 0u + 0u / 4u][0u % 4u] += product(x[0u], x_scales[0u], w, w_scales);
            acc[2u * 1u + 0u / 4u][0u % 4u] += product(x[1u], x_scales[1u], w, w_scales);
            acc[2u * 2u + 0u / 4u][0u % 4u] += product(x[2u], x_scales[2u], w, w_scales);
            acc[2u * 3u + 0u / 4u][0u % 4u] += product(x[3u], x_scales[3u], w, w_scales);
            acc[2u * 4u + 0u / 4u][0u % 4u] += product(x[4u], x_scales[4u], w, w_scales);
            acc[2u * 5u + 0u / 4u][0u % 4u] += product(x[5u], x_scales[5u], w, w_scales);
            acc[2u * 6u + 0u / 4u][0u % 4u] += product(x[6u], x_scales[6u], w, w_scales);
            acc[2u * 7u + 0u / 4u][0u % 4u] += product(x[7u], x_scales[7u], w, w_scales);
        }
        {
            let w = array<vec4<u32>, 2>(tile_w[tx + 8u * 1u], tile_w[tx + 8u * 1u + 64u]);
            let w_scales = scales_w[tx + 8u * 1u];
            acc[2u * 0u + 1u / 4u][1u % 4u] += product(x[0u], x_scales[0u], w, w_scales);
            acc[2u * 1u + 1u / 4u][1u % 4u] += product(x[1u], x_scales[1u], w, w_scales);
            acc[2u * 2u + 1u / 4u][1u % 4u] += product(x[2u], x_scales[2u], w, w_scales);
            acc[2u * 3u + 1u / 4u][1u % 4u] += product(x[3u], x_scales[3u], w, w_scales);
            acc[2u * 4u + 1u / 4u][1u % 4u] += product(x[4u], x_scales[4u], w, w_scales);
            acc[2u * 5u + 1u / 4u][1u % 4u] += product(x[5u], x_scales[5u], w, w_scales);
            acc[2u * 6u + 1u / 4u][1u % 4u] += product(x[6u], x_scales[6u], w, w_scales);
            acc[2u * 7u + 1u / 4u][1u % 4u] += product(x[7u], x_scales[7u], w, w_scales);
        }
        {
            let w = array<vec4<u32>, 2>(tile_w[tx + 8u * 2u], tile_w[tx + 8u * 2u + 64u]);
            let w_scales = scales_w[tx + 8u * 2u];
            acc[2u * 0u + 2u / 4u][2u % 4u] += product(x[0u], x_scales[0u], w, w_scales);
            acc[2u * 1u + 2u / 4u][2u % 4u] += product(x[1u], x_scales[1u], w, w_scales);
            acc[2u * 2u + 2u / 4u][2u % 4u] += product(x[2u], x_scales[2u], w, w_scales);
            acc[2u * 3u + 2u / 4u][2u % 4u] += product(x[3u], x_scales[3u], w, w_scales);
            acc[2u * 4u + 2u / 4u][2u % 4u] += product(x[4u], x_scales[4u], w, w_scales);
            acc[2u * 5u + 2u / 4u][2u % 4u] += product(x[5u], x_scales[5u], w, w_scales);
            acc[2u * 6u + 2u / 4u][2u % 4u] += product(x[6u], x_scales[6u], w, w_scales);
            acc[2u * 7u + 2u / 4u][2u % 4u] += product(x[7u], x_scales[7u], w, w_scales);
        }
        {
            let w = array<vec4<u32>, 2>(tile_w[tx + 8u * 3u], tile_w[tx + 8u * 3u + 64u]);
            let w_scales = scales_w[tx + 8u * 3u];
            acc[2u * 0u + 3u / 4u][3u % 4u] += product(x[0u], x_scales[0u], w, w_scales);
            acc[2u * 1u + 3u / 4u][3u % 4u] += product(x[1u], x_scales[1u], w, w_scales);
            acc[2u * 2u + 3u / 4u][3u % 4u] += product(x[2u], x_scales[2u], w, w_scales);
            acc[2u * 3u + 3u / 4u][3u % 4u] += product(x[3u], x_scales[3u], w, w_scales);
            acc[2u * 4u + 3u / 4u][3u % 4u] += product(x[4u], x_scales[4u], w, w_scales);
            acc[2u * 5u + 3u / 4u][3u % 4u] += product(x[5u], x_scales[5u], w, w_scales);
            acc[2u * 6u + 3u / 4u][3u % 4u] += product(x[6u], x_scales[6u], w, w_scales);
            acc[2u * 7u + 3u / 4u][3u % 4u] += product(x[7u], x_scales[7u], w, w_scales);
        }
        {
            let w = array<vec4<u32>, 2>(tile_w[tx + 8u * 4u], tile_w[tx + 8u * 4u + 64u]);
            let w_scales = scales_w[tx + 8u * 4u];
            acc[2u * 0u + 4u / 4u][4u % 4u] += product(x[0u], x_scales[0u], w, w_scales);
            acc[2u * 1u + 4u / 4u][4u % 4u] += product(x[1u], x_scales[1u], w, w_scales);
            acc[2u * 2u + 4u / 4u][4u % 4u] += product(x[2u], x_scales[2u], w, w_scales);
            acc[2u * 3u + 4u / 4u][4u % 4u] += product(x[3u], x_scales[3u], w, w_scales);
            acc[2u * 4u + 4u / 4u][4u % 4u] += product(x[4u], x_scales[4u], w, w_scales);
            acc[2u * 5u + 4u / 4u][4u % 4u] += product(x[5u], x_scales[5u], w, w_scales);
            acc[2u * 6u + 4u / 4u][4u % 4u] += product(x[6u], x_scales[6u], w, w_scales);
            acc[2u * 7u + 4u / 4u][4u % 4u] += product(x[7u], x_scales[7u], w, w_scales);
        }
        {
            let w = array<vec4<u32>, 2>(tile_w[tx + 8u * 5u], tile_w[tx + 8u * 5u + 64u]);
            let w_scales = scales_w[tx + 8u * 5u];
            acc[2u * 0u + 5u / 4u][5u % 4u] += product(x[0u], x_scales[0u], w, w_scales);
            acc[2u * 1u + 5u / 4u][5u % 4u] += product(x[1u], x_scales[1u], w, w_scales);
            acc[2u * 2u + 5u / 4u][5u % 4u] += product(x[2u], x_scales[2u], w, w_scales);
            acc[2u * 3u + 5u / 4u][5u % 4u] += product(x[3u], x_scales[3u], w, w_scales);
            acc[2u * 4u + 5u / 4u][5u % 4u] += product(x[4u], x_scales[4u], w, w_scales);
            acc[2u * 5u + 5u / 4u][5u % 4u] += product(x[5u], x_scales[5u], w, w_scales);
            acc[2u * 6u + 5u / 4u][5u % 4u] += product(x[6u], x_scales[6u], w, w_scales);
            acc[2u * 7u + 5u / 4u][5u % 4u] += product(x[7u], x_scales[7u], w, w_scales);
        }
        {
            let w = array<vec4<u32>, 2>(tile_w[tx + 8u * 6u], tile_w[tx + 8u * 6u + 64u]);
            let w_scales = scales_w[tx + 8u * 6u];
            acc[2u * 0u + 6u / 4u][6u % 4u] += product(x[0u], x_scales[0u], w, w_scales);
            acc[2u * 1u + 6u / 4u][6u % 4u] += product(x[1u], x_scales[1u], w, w_scales);
            acc[2u * 2u + 6u / 4u][6u % 4u] += product(x[2u], x_scales[2u], w, w_scales);
            acc[2u * 3u + 6u / 4u][6u % 4u] += product(x[3u], x_scales[3u], w, w_scales);
            acc[2u * 4u + 6u / 4u][6u % 4u] += product(x[4u], x_scales[4u], w, w_scales);
            acc[2u * 5u + 6u / 4u][6u % 4u] += product(x[5u], x_scales[5u], w, w_scales);
            acc[2u * 6u + 6u / 4u][6u % 4u] += product(x[6u], x_scales[6u], w, w_scales);
            acc[2u * 7u + 6u / 4u][6u % 4u] += product(x[7u], x_scales[7u], w, w_scales);
        }
        {
            let w = array<vec4<u32>, 2>(tile_w[tx + 8u * 7u], tile_w[tx + 8u * 7u + 64u]);
            let w_scales = scales_w[tx + 8u * 7u];
            acc[2u * 0u + 7u / 4u][7u % 4u] += product(x[0u], x_scales[0u], w, w_scales);
            acc[2u * 1u + 7u / 4u][7u % 4u] += product(x[1u], x_scales[1u], w, w_scales);
            acc[2u * 2u + 7u / 4u][7u % 4u] += product(x[2u], x_scales[2u], w, w_scales);
            acc[2u * 3u + 7u / 4u][7u % 4u] += product(x[3u], x_scales[3u], w, w_scales);
            acc[2u * 4u + 7u / 4u][7u % 4u] += product(x[4u], x_scales[4u], w, w_scales);
            acc[2u * 5u + 7u / 4u][7u % 4u] += product(x[5u], x_scales[5u], w, w_scales);
            acc[2u * 6u + 7u / 4u][7u % 4u] += product(x[6u], x_scales[6u], w, w_scales);
            acc[2u * 7u + 7u / 4u][7u % 4u] += product(x[7u], x_scales[7u], w, w_scales);
        }
        workgroupBarrier();
    }
    {
        let row = m0 + ty + 8u * 0u;
        let left = acc[2u * 0u];
        let right = acc[2u * 0u + 1u];
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(left.xy, right.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(left.zw, right.zw));
    }
    {
        let row = m0 + ty + 8u * 1u;
        let left = acc[2u * 1u];
        let right = acc[2u * 1u + 1u];
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(left.xy, right.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(left.zw, right.zw));
    }
    {
        let row = m0 + ty + 8u * 2u;
        let left = acc[2u * 2u];
        let right = acc[2u * 2u + 1u];
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(left.xy, right.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(left.zw, right.zw));
    }
    {
        let row = m0 + ty + 8u * 3u;
        let left = acc[2u * 3u];
        let right = acc[2u * 3u + 1u];
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(left.xy, right.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(left.zw, right.zw));
    }
    {
        let row = m0 + ty + 8u * 4u;
        let left = acc[2u * 4u];
        let right = acc[2u * 4u + 1u];
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(left.xy, right.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(left.zw, right.zw));
    }
    {
        let row = m0 + ty + 8u * 5u;
        let left = acc[2u * 5u];
        let right = acc[2u * 5u + 1u];
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(left.xy, right.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(left.zw, right.zw));
    }
    {
        let row = m0 + ty + 8u * 6u;
        let left = acc[2u * 6u];
        let right = acc[2u * 6u + 1u];
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(left.xy, right.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(left.zw, right.zw));
    }
    {
        let row = m0 + ty + 8u * 7u;
        let left = acc[2u * 7u];
        let right = acc[2u * 7u + 1u];
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(left.xy, right.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(left.zw, right.zw));
    }
}
