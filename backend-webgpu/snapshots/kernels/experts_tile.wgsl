// experts_tile Q8_0 Q8_0 vec4 whole glu
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
    cols: u32,
    tiles: u32,
    k: u32,
    choices: u32,
    limit: f32,
    w_groups: u32,
    w_plane0: u32,
    w_plane1: u32,
    w_plane2: u32,
    w_plane3: u32,
    w_start: u32,
    w_stride: u32,
    w_first: u32,
    w_count: u32,
    u_groups: u32,
    u_plane0: u32,
    u_plane1: u32,
    u_plane2: u32,
    u_plane3: u32,
    u_start: u32,
    u_stride: u32,
    u_first: u32,
    u_count: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> plan: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> u: array<vec4<u32>>;
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
fn x4(row: u32, i: u32) -> vec4<f32> {
    return x[row * (p.k / 4u) + i];
}
fn plus_dots(sums: vec4<f32>, a: vec4<f32>, b: array<vec4<f32>, 4>) -> vec4<f32> {
    var sum = sums;
    sum += a.x * vec4<f32>(b[0].x, b[1].x, b[2].x, b[3].x);
    sum += a.y * vec4<f32>(b[0].y, b[1].y, b[2].y, b[3].y);
    sum += a.z * vec4<f32>(b[0].z, b[1].z, b[2].z, b[3].z);
    sum += a.w * vec4<f32>(b[0].w, b[1].w, b[2].w, b[3].w);
    return sum;
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

alias Brought = array<vec4<f32>, 8>;
var<workgroup> tile_x: array<vec4<f32>, 288>;
var<workgroup> tile_w: array<vec4<f32>, 576>;

fn bring_w(row: u32, g: u32) -> Brought {
    return w_decode_row(row, g);
}

fn bring_u(row: u32, g: u32) -> Brought {
    return u_decode_row(row, g);
}

fn bring_x(row: u32, i: u32) -> Brought {
    let zero = vec4<f32>(0.0);
    return Brought(x4(row, i), x4(row, i + 1u), x4(row, i + 2u), x4(row, i + 3u), zero, zero, zero, zero);
}

fn put(lane: u32, brought: Brought) {
    if (lane < 64u) {
        let at = lane * 9u;
        tile_w[at] = brought[0];
        tile_w[at + 1u] = brought[1];
        tile_w[at + 2u] = brought[2];
        tile_w[at + 3u] = brought[3];
        tile_w[at + 4u] = brought[4];
        tile_w[at + 5u] = brought[5];
        tile_w[at + 6u] = brought[6];
        tile_w[at + 7u] = brought[7];
    } else {
        let at = (lane % 64u) / 2u * 9u + (lane % 2u) * 4u;
        tile_x[at] = brought[0];
        tile_x[at + 1u] = brought[1];
        tile_x[at + 2u] = brought[2];
        tile_x[at + 3u] = brought[3];
    }
}

fn multiply(tx: u32, ty: u32, acc: ptr<function, array<vec4<f32>, 4>>) {
    for (var i = 0u; i < 8u; i++) {
        let x = ty * 9u + i;
        let w = tx * 9u + i;
        let b = array<vec4<f32>, 4>(tile_w[w], tile_w[w + 144u], tile_w[w + 288u], tile_w[w + 432u]);
        (*acc)[0] = plus_dots((*acc)[0], tile_x[x], b);
        (*acc)[1] = plus_dots((*acc)[1], tile_x[x + 72u], b);
        (*acc)[2] = plus_dots((*acc)[2], tile_x[x + 144u], b);
        (*acc)[3] = plus_dots((*acc)[3], tile_x[x + 216u], b);
    }
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

fn gated(gate: f32, up: f32) -> f32 {
    return unary_silu(gate) * up;
}

fn bring(lane: u32, w_row: u32, x_row: u32, g: u32) -> Brought {
    if (lane >= 64u) {
        return bring_x(x_row, g * 8u + (lane % 2u) * 4u);
    }
    if (lane >= 32u) {
        return bring_u(w_row, g);
    }
    return bring_w(w_row, g);
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let wid = group_id + step.origin;
    let id = plan[3u * wid.y];
    let first = plan[3u * wid.y + 1u];
    let count = plan[3u * wid.y + 2u];
    if (count == 0u) {
        return;
    }
    let n0 = wid.x * (16u * 2u);
    let col = min(n0 + lane % (16u * 2u), p.cols - 1u);
    let x_row = choice(first + min((lane % 64u) / 2u, count - 1u)) / p.choices;
    var w_row = p.w_start + id * p.w_stride + col;
    w_row = clamp(w_row, p.w_first, p.w_first + p.w_count - 1u) - p.w_first;
    var u_row = p.u_start + id * p.u_stride + col;
    u_row = clamp(u_row, p.u_first, p.u_first + p.u_count - 1u) - p.u_first;
    w_row = select(w_row, u_row, lane >= 32u);
    let across = lane % 16u;
    let down = lane / 16u;
    var acc: array<vec4<f32>, 4>;
    var next = bring(lane, w_row, x_row, 0u);
    for (var g = 0u; g < p.w_groups; g++) {
        put(lane, next);
        if (g + 1u < p.w_groups) {
            next = bring(lane, w_row, x_row, g + 1u);
        }
        workgroupBarrier();
        multiply(across, down, &acc);
        workgroupBarrier();
    }
    var sums = acc;
    for (var r = 0u; r < 4u; r++) {
        if (down + 8u * r < count) {
            store(id, choice(first + down + 8u * r), n0 + across, sums[r]);
        }
    }
}

fn choice(i: u32) -> u32 {
    return plan[3u * p.tiles + i];
}

fn is_here(id: u32, col: u32) -> bool {
    return true;
}

fn store(id: u32, at: u32, n: u32, made: vec4<f32>) {
    for (var c = 0u; c < 2u; c++) {
        let col = n + 16u * c;
        if (col >= p.cols || !is_here(id, col)) {
            continue;
        }
        var product = vec2<f32>(made[c], made[c + 2u]);
        out[at * p.cols + col] = gated(product.x, product.y);
    }
}
