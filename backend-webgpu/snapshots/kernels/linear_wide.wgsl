// linear_wide Q8_0 Q8_0 vec4 whole glu bias
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
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
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
fn plus_dots(sums: vec4<f32>, a: vec4<f32>, b: array<vec4<f32>, 4>) -> vec4<f32> {
    var sum = sums;
    sum += a.x * vec4<f32>(b[0].x, b[1].x, b[2].x, b[3].x);
    sum += a.y * vec4<f32>(b[0].y, b[1].y, b[2].y, b[3].y);
    sum += a.z * vec4<f32>(b[0].z, b[1].z, b[2].z, b[3].z);
    sum += a.w * vec4<f32>(b[0].w, b[1].w, b[2].w, b[3].w);
    return sum;
}
alias Group = array<vec4<f32>, 8>;

fn dot32(a: Group, b: Group) -> f32 {
    return dot(a[0], b[0]) + dot(a[1], b[1]) + dot(a[2], b[2]) + dot(a[3], b[3])
        + dot(a[4], b[4]) + dot(a[5], b[5]) + dot(a[6], b[6]) + dot(a[7], b[7]);
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
fn x4(row: u32, i: u32) -> vec4<f32> {
    return x[row * (p.k / 4u) + i];
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

var<workgroup> tile_x: array<vec4<f32>, 512>;
var<workgroup> tile_w: array<vec4<f32>, 512>;

fn at(row: u32, i: u32) -> u32 {
    return row * 8u + (i ^ (row & 7u));
}

fn bring_w(lane: u32, w_row: u32, up_row: u32, g: u32) -> Group {
    if (lane >= 32u) {
        return u_decode_row(up_row, g);
    }
    return w_decode_row(w_row, g);
}

fn bring_x(lane: u32, first: u32, last: u32, g: u32) -> Group {
    var vectors: Group;
    vectors[0u] = x4(first + min(lane / 8u + 8u * 0u, last), 8u * g + lane % 8u);
    vectors[1u] = x4(first + min(lane / 8u + 8u * 1u, last), 8u * g + lane % 8u);
    vectors[2u] = x4(first + min(lane / 8u + 8u * 2u, last), 8u * g + lane % 8u);
    vectors[3u] = x4(first + min(lane / 8u + 8u * 3u, last), 8u * g + lane % 8u);
    vectors[4u] = x4(first + min(lane / 8u + 8u * 4u, last), 8u * g + lane % 8u);
    vectors[5u] = x4(first + min(lane / 8u + 8u * 5u, last), 8u * g + lane % 8u);
    vectors[6u] = x4(first + min(lane / 8u + 8u * 6u, last), 8u * g + lane % 8u);
    vectors[7u] = x4(first + min(lane / 8u + 8u * 7u, last), 8u * g + lane % 8u);
    return vectors;
}

fn put(lane: u32, of_w: Group, of_x: Group) {
    tile_w[at(lane, 0u)] = of_w[0u];
    tile_x[at(lane / 8u + 8u * 0u, lane % 8u)] = of_x[0u];
    tile_w[at(lane, 1u)] = of_w[1u];
    tile_x[at(lane / 8u + 8u * 1u, lane % 8u)] = of_x[1u];
    tile_w[at(lane, 2u)] = of_w[2u];
    tile_x[at(lane / 8u + 8u * 2u, lane % 8u)] = of_x[2u];
    tile_w[at(lane, 3u)] = of_w[3u];
    tile_x[at(lane / 8u + 8u * 3u, lane % 8u)] = of_x[3u];
    tile_w[at(lane, 4u)] = of_w[4u];
    tile_x[at(lane / 8u + 8u * 4u, lane % 8u)] = of_x[4u];
    tile_w[at(lane, 5u)] = of_w[5u];
    tile_x[at(lane / 8u + 8u * 5u, lane % 8u)] = of_x[5u];
    tile_w[at(lane, 6u)] = of_w[6u];
    tile_x[at(lane / 8u + 8u * 6u, lane % 8u)] = of_x[6u];
    tile_w[at(lane, 7u)] = of_w[7u];
    tile_x[at(lane / 8u + 8u * 7u, lane % 8u)] = of_x[7u];
}

fn multiply(tx: u32, ty: u32, acc: ptr<function, array<vec4<f32>, 16>>) {
    for (var i = 0u; i < 8u; i++) {
        let w = at(tx, i);
        let x = at(ty, i);
        let low = array<vec4<f32>, 4>(tile_w[w], tile_w[w + 64u], tile_w[w + 128u], tile_w[w + 192u]);
        let high = array<vec4<f32>, 4>(tile_w[w + 256u], tile_w[w + 320u], tile_w[w + 384u], tile_w[w + 448u]);
        (*acc)[2u * 0u] = plus_dots((*acc)[2u * 0u], tile_x[x + 64u * 0u], low);
        (*acc)[2u * 0u + 1u] = plus_dots((*acc)[2u * 0u + 1u], tile_x[x + 64u * 0u], high);
        (*acc)[2u * 1u] = plus_dots((*acc)[2u * 1u], tile_x[x + 64u * 1u], low);
        (*acc)[2u * 1u + 1u] = plus_dots((*acc)[2u * 1u + 1u], tile_x[x + 64u * 1u], high);
        (*acc)[2u * 2u] = plus_dots((*acc)[2u * 2u], tile_x[x + 64u * 2u], low);
        (*acc)[2u * 2u + 1u] = plus_dots((*acc)[2u * 2u + 1u], tile_x[x + 64u * 2u], high);
        (*acc)[2u * 3u] = plus_dots((*acc)[2u * 3u], tile_x[x + 64u * 3u], low);
        (*acc)[2u * 3u + 1u] = plus_dots((*acc)[2u * 3u + 1u], tile_x[x + 64u * 3u], high);
        (*acc)[2u * 4u] = plus_dots((*acc)[2u * 4u], tile_x[x + 64u * 4u], low);
        (*acc)[2u * 4u + 1u] = plus_dots((*acc)[2u * 4u + 1u], tile_x[x + 64u * 4u], high);
        (*acc)[2u * 5u] = plus_dots((*acc)[2u * 5u], tile_x[x + 64u * 5u], low);
        (*acc)[2u * 5u + 1u] = plus_dots((*acc)[2u * 5u + 1u], tile_x[x + 64u * 5u], high);
        (*acc)[2u * 6u] = plus_dots((*acc)[2u * 6u], tile_x[x + 64u * 6u], low);
        (*acc)[2u * 6u + 1u] = plus_dots((*acc)[2u * 6u + 1u], tile_x[x + 64u * 6u], high);
        (*acc)[2u * 7u] = plus_dots((*acc)[2u * 7u], tile_x[x + 64u * 7u], low);
        (*acc)[2u * 7u + 1u] = plus_dots((*acc)[2u * 7u + 1u], tile_x[x + 64u * 7u], high);
    }
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
    let first = begins.x + m0;
    let last = p.m - 1u - m0;
    let tx = lane % 8u;
    let ty = lane / 8u;
    var acc: array<vec4<f32>, 16>;
    var next_w = bring_w(lane, w_row, up_row, 0u);
    var next_x = bring_x(lane, first, last, 0u);
    for (var g = 0u; g < p.w_groups; g++) {
        put(lane, next_w, next_x);
        if (g + 1u < p.w_groups) {
            next_w = bring_w(lane, w_row, up_row, g + 1u);
            next_x = bring_x(lane, first, last, g + 1u);
        }
        workgroupBarrier();
        multiply(tx, ty, &acc);
        workgroupBarrier();
    }
    {
        let row = m0 + ty + 8u * 0u;
        let low = acc[2u * 0u];
        let high = acc[2u * 0u + 1u];
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(low.xy, high.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(low.zw, high.zw));
    }
    {
        let row = m0 + ty + 8u * 1u;
        let low = acc[2u * 1u];
        let high = acc[2u * 1u + 1u];
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(low.xy, high.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(low.zw, high.zw));
    }
    {
        let row = m0 + ty + 8u * 2u;
        let low = acc[2u * 2u];
        let high = acc[2u * 2u + 1u];
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(low.xy, high.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(low.zw, high.zw));
    }
    {
        let row = m0 + ty + 8u * 3u;
        let low = acc[2u * 3u];
        let high = acc[2u * 3u + 1u];
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(low.xy, high.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(low.zw, high.zw));
    }
    {
        let row = m0 + ty + 8u * 4u;
        let low = acc[2u * 4u];
        let high = acc[2u * 4u + 1u];
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(low.xy, high.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(low.zw, high.zw));
    }
    {
        let row = m0 + ty + 8u * 5u;
        let low = acc[2u * 5u];
        let high = acc[2u * 5u + 1u];
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(low.xy, high.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(low.zw, high.zw));
    }
    {
        let row = m0 + ty + 8u * 6u;
        let low = acc[2u * 6u];
        let high = acc[2u * 6u + 1u];
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(low.xy, high.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(low.zw, high.zw));
    }
    {
        let row = m0 + ty + 8u * 7u;
        let low = acc[2u * 7u];
        let high = acc[2u * 7u + 1u];
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(low.xy, high.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(low.zw, high.zw));
    }
}
