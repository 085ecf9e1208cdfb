// linear_tile Q8_0 int8 vec4 whole bias residual
// The values that differ from step to step.
struct Step {
    position: u32,
    rows: u32,
    top_k: u32,
    top_p: f32,
    temperature: f32,
    seed_lo: u32,
    seed_hi: u32,
    sequence: u32,
    // Where the workgroups of this dispatch begin, if it is a part of a kernel; else 0.
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
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read> residual: array<f32>;
@group(0) @binding(6) var<storage, read_write> out: array<f32>;

// Rows of x times a weight matrix, in tiles of 32 rows by 64 weight rows. A group of 32 inner elements at a time is
// unpacked into workgroup memory; each of the 128 invocations keeps 4 by 4 sums in registers. For a GLU the first 32
// weight rows of a tile are gates and the others the up parts of the same columns. The next group is on its way from
// memory while this one is multiplied.
// What the decoders of the weight formats share.

// A binary16 in the low 16 bits. Drivers may flush subnormal halves to zero, and small scales are subnormal, so
// those are converted by integer arithmetic.
fn half_value(bits: u32) -> f32 {
    let magnitude = f32(bits & 0x3ffu) * 5.960464477539063e-8;
    let subnormal = select(magnitude, -magnitude, (bits & 0x8000u) != 0u);
    return select(unpack2x16float(bits & 0xffffu).x, subnormal, (bits & 0x7c00u) == 0u);
}

// Both halves of a word.
fn half_pair(word: u32) -> vec2<f32> {
    return vec2<f32>(half_value(word & 0xffffu), half_value(word >> 16u));
}

// Half i of the eight in a texel.
fn half_of(texel: vec4<u32>, i: u32) -> f32 {
    return half_value((texel[i >> 1u] >> ((i & 1u) * 16u)) & 0xffffu);
}

// The four lowest bits of a word, each of which stands for 2.
fn twos(word: u32) -> vec4<f32> {
    return vec4<f32>(((vec4<u32>(word) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u)) << vec4<u32>(1u));
}

// The four lowest pairs of bits of a word.
fn pairs(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u));
}

// The four lowest pairs of bits of a word with the four lowest bits of another above them.
fn threes(word: u32, bits: u32) -> vec4<f32> {
    let low = (vec4<u32>(word) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u);
    let high = (vec4<u32>(bits) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u);
    return vec4<f32>(low | (high << vec4<u32>(2u)));
}

// The four lowest nibbles of a word. Each is put where it is into the fraction of 2^23 and brought down again, exactly: that
// takes GPUs fewer steps than to move it and to convert an integer.
fn nibbles(word: u32) -> vec4<f32> {
    let whole = bitcast<vec4<f32>>((vec4<u32>(word) & vec4<u32>(15u, 240u, 3840u, 61440u)) | vec4<u32>(0x4b000000u));
    return whole * vec4<f32>(1.0, 0.0625, 0.00390625, 0.000244140625) - vec4<f32>(8388608.0, 524288.0, 32768.0, 2048.0);
}

// The four lowest nibbles of a word with the four lowest bits of another as their fifth bits.
fn fives(word: u32, bits: u32) -> vec4<f32> {
    let low = (vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    let high = (vec4<u32>(bits) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u);
    return vec4<f32>(low | (high << vec4<u32>(4u)));
}

// The four lowest nibbles of a word with the four lowest bit pairs of another above them.
fn sixes(word: u32, pairs: u32) -> vec4<f32> {
    let low = (vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    let high = (vec4<u32>(pairs) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u);
    return vec4<f32>(low | (high << vec4<u32>(4u)));
}

// The four signed bytes of a word.
fn signed_bytes(word: u32) -> vec4<f32> {
    return vec4<f32>(bitcast<vec4<i32>>(vec4<u32>(word) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u));
}
// What kernels of several rows share: where they find x and the weights, and what follows the products.
// Elementwise functions that are safe over the whole range of f32.
// Some drivers compute tanh from exponentials that overflow. NaN, which a clamp may lose, stays NaN; it is told by its bits.
fn safe_tanh(x: f32) -> f32 {
    let nan = (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
    return select(tanh(clamp(x, -15.0, 15.0)), x, nan);
}
fn unary_gelu_tanh(x: f32) -> f32 {
    return 0.5 * x * (1.0 + unary_tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

// Abramowitz and Stegun, 7.1.26: absolute error below 2e-7.
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

// exp(87) is the largest power whose sum with 1 and whose reciprocal are ordinary numbers.
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

// Sine of x plus quarter turns. WGSL bounds its own sine only within [-pi, pi], so the argument is reduced in
// three parts of pi / 2 (Cody and Waite) and two short polynomials do the rest.
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

// Near zero the difference loses digits; the Maclaurin series does not.
fn unary_expm1(x: f32) -> f32 {
    let tail = x / 5.0 * (1.0 + x / 6.0 * (1.0 + x / 7.0 * (1.0 + x / 8.0)));
    let near = x * (1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0 * (1.0 + tail))));
    return select(exp(x) - 1.0, near, abs(x) < 0.5);
}

// Halves go away from zero, where WGSL's own round takes the even neighbour.
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

// Elements 4 i .. 4 i + 3 of a row, zeros beyond its end.
fn x4(row: u32, i: u32) -> vec4<f32> {
    return x[row * (p.k / 4u) + i];
}

// The first rows of x and of the weights in a batch. Batches are repeated in place: of B results and A matrices, result i uses
// matrix i * A / B.
fn batch_rows(z: u32) -> vec2<u32> {
    let outer = z / p.out1;
    let inner = z % p.out1;
    return vec2<u32>(
        ((outer * p.x0 / p.out0) * p.x1 + inner * p.x1 / p.out1) * p.m,
        p.w_row + ((outer * p.b0 / p.out0) * p.b1 + inner * p.b1 / p.out1) * p.count);
}

// Writes a row's sums of columns n, n + apart and so on; for a GLU the last two are the up parts of the first two.
fn store(z: u32, row: u32, n: u32, apart: u32, sums: vec4<f32>) {
    if (row >= p.m) {
        return;
    }
    for (var c = 0u; c < 4u; c++) {
        let local = n + apart * c;
        if (local >= p.count) {
            continue;
        }
        let col = p.first + local;
        let at = (z * p.m + row) * p.out_cols + col;
        var value = sums[c];
        value += bias[col];
        value = unary_none(value);
        value += residual[at];
        out[at] = value;
    }
}
// What a tile multiplies of a group of 32 inner elements, as bytes: the weights' own integers, and x in 255 steps of the
// largest of 16 elements. A product of sixteen is their integer product times both scales; the offsets of weights are
// multiplied with the sum of what x became, so that the error is that of x alone.
// What the weight formats' integers are unpacked to.

// A group of 32 weights as integers: x = scale * q + offset, with a scale and an offset for each half of the group.
struct Integers {
    low: vec4<u32>,
    high: vec4<u32>,
    scales: vec2<f32>,
    offsets: vec2<f32>,
}

// Eight nibbles as the bytes of two words, in order.
fn nibble_bytes(word: u32) -> vec2<u32> {
    let halves = vec2<u32>(word & 0xffffu, word >> 16u);
    let pairs = (halves | (halves << vec2<u32>(8u))) & vec2<u32>(0x00ff00ffu);
    return (pairs | (pairs << vec2<u32>(4u))) & vec2<u32>(0x0f0f0f0fu);
}

// The bits 0 .. 7 of a word as the bytes of two words, shifted to their place.
fn bit_bytes(bits: u32, place: u32) -> vec2<u32> {
    let four = vec2<u32>(bits & 15u, (bits >> 4u) & 15u);
    // The products do not carry: every bit meets its place once.
    return ((four * vec2<u32>(0x00204081u)) & vec2<u32>(0x01010101u)) << vec2<u32>(place);
}

// The bit pairs 0 .. 7 of a word as the bytes of two words, shifted to their place.
fn pair_bytes(pairs: u32, place: u32) -> vec2<u32> {
    let four = vec2<u32>(pairs & 255u, (pairs >> 8u) & 255u);
    let each = (four | (four << vec2<u32>(6u)) | (four << vec2<u32>(12u)) | (four << vec2<u32>(18u))) & vec2<u32>(0x03030303u);
    return each << vec2<u32>(place);
}
// What the codes of a group are multiplied by, and what is added then: of its first half in x and y, of the second one
// in z and w.
fn w_scales(group: u32) -> vec4<f32> {
    // An f16 for each block.
    let block = group >> 0;
    let d = half_of(w[p.w_plane1 + (block >> 3u)], block & 7u);
    return vec4<f32>(d, 0.0, d, 0.0);
}

// Linear blocks as w_integers: x = scale * q + offset.
fn w_integers(group: u32) -> Integers {
    let s = w_scales(group);
    let low = w[p.w_plane0 + group * 2u];
    let high = w[p.w_plane0 + group * 2u + 1u];
    return Integers(low, high, s.xz, -0.0 * s.xz);
}

// What one invocation brings of a group: a row of weights (bytes of both halves, then their scales and offsets), or the
// floats of half a row of x.
alias Brought = array<vec4<u32>, 4>;
// The halves of 32 rows of x, one after the other: bytes, and their scale beside their sum.
var<workgroup> tile_x: array<vec4<u32>, 64>;
var<workgroup> tile_x_scale: array<vec2<f32>, 64>;
// The same of 64 rows of weights: bytes, scales, offsets.
var<workgroup> tile_w: array<vec4<u32>, 128>;
var<workgroup> tile_w_scale: array<f32, 128>;
var<workgroup> tile_w_offset: array<f32, 128>;

fn brought(group: Integers) -> Brought {
    return Brought(group.low, group.high, bitcast<vec4<u32>>(vec4<f32>(group.scales, group.offsets)), vec4<u32>(0u));
}

fn bring_w(row: u32, g: u32) -> Brought {
    return brought(w_integers(row * p.w_groups + g));
}


fn bring_x(row: u32, i: u32) -> Brought {
    return Brought(
        bitcast<vec4<u32>>(x4(row, i)), bitcast<vec4<u32>>(x4(row, i + 1u)),
        bitcast<vec4<u32>>(x4(row, i + 2u)), bitcast<vec4<u32>>(x4(row, i + 3u)));
}

// The integer product of sixteen bytes with sixteen.
fn dot16(a: vec4<u32>, b: vec4<u32>) -> i32 {
    return dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
}

fn steps(x: vec4<f32>, inverse: f32) -> u32 {
    return pack4xI8(vec4<i32>(round(x * inverse)));
}

fn put(lane: u32, brought: Brought) {
    if (lane < 64u) {
        let both = bitcast<vec4<f32>>(brought[2]);
        tile_w[lane] = brought[0];
        tile_w[lane + 64u] = brought[1];
        tile_w_scale[lane] = both.x;
        tile_w_scale[lane + 64u] = both.y;
        tile_w_offset[lane] = both.z;
        tile_w_offset[lane + 64u] = both.w;
        return;
    }
    let x0 = bitcast<vec4<f32>>(brought[0]);
    let x1 = bitcast<vec4<f32>>(brought[1]);
    let x2 = bitcast<vec4<f32>>(brought[2]);
    let x3 = bitcast<vec4<f32>>(brought[3]);
    let four = max(max(abs(x0), abs(x1)), max(abs(x2), abs(x3)));
    let top = max(max(four.x, four.y), max(four.z, four.w));
    // What is too small to be divided by is too small to matter.
    let inverse = select(127.0 / top, 0.0, top < 1e-30);
    let scale = top / 127.0;
    let bytes = vec4<u32>(steps(x0, inverse), steps(x1, inverse), steps(x2, inverse), steps(x3, inverse));
    let at = (lane % 2u) * 32u + (lane % 64u) / 2u;
    tile_x[at] = bytes;
    tile_x_scale[at] = scale * vec2<f32>(1.0, f32(dot16(bytes, vec4<u32>(0x01010101u))));
}

// The products of half a row of x with four of weights.
fn scaled(x: u32, w: array<vec4<u32>, 4>, scales: vec4<f32>, offsets: vec4<f32>) -> vec4<f32> {
    let a = tile_x[x];
    let scale = tile_x_scale[x];
    let products = vec4<f32>(vec4<i32>(dot16(a, w[0]), dot16(a, w[1]), dot16(a, w[2]), dot16(a, w[3])));
    return scale.x * scales * products + scale.y * offsets;
}

// Adds the products of rows ty + 8 r with weight rows tx + 16 c. Indices of sums are constants, so that those stay in
// registers.
fn multiply(tx: u32, ty: u32, acc: ptr<function, array<vec4<f32>, 4>>) {
    for (var half = 0u; half < 2u; half++) {
        let w = half * 64u + tx;
        let bytes = array<vec4<u32>, 4>(tile_w[w], tile_w[w + 16u], tile_w[w + 32u], tile_w[w + 48u]);
        let scales = vec4<f32>(tile_w_scale[w], tile_w_scale[w + 16u], tile_w_scale[w + 32u], tile_w_scale[w + 48u]);
        let offsets = vec4<f32>(tile_w_offset[w], tile_w_offset[w + 16u], tile_w_offset[w + 32u], tile_w_offset[w + 48u]);
        let x = half * 32u + ty;
        (*acc)[0] += scaled(x, bytes, scales, offsets);
        (*acc)[1] += scaled(x + 8u, bytes, scales, offsets);
        (*acc)[2] += scaled(x + 16u, bytes, scales, offsets);
        (*acc)[3] += scaled(x + 24u, bytes, scales, offsets);
    }
}

// What this invocation brings of a group: a row of weights, or in the second half of the workgroup half a row of x.
fn bring(lane: u32, w_row: u32, col: u32, x_row: u32, g: u32) -> Brought {
    if (lane >= 64u) {
        return bring_x(x_row, g * 8u + (lane % 2u) * 4u);
    }
    return bring_w(w_row + col, g);
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let wid = group_id + step.origin;
    let n0 = wid.x * (16u * 4u);
    let m0 = wid.y * 32u;
    let begins = batch_rows(wid.z);
    let w_col = min(n0 + lane % (16u * 4u), p.count - 1u);
    let x_row = begins.x + min(m0 + (lane % 64u) / 2u, p.m - 1u);
    let tx = lane % 16u;
    let ty = lane / 16u;
    var acc: array<vec4<f32>, 4>;
    var next = bring(lane, begins.y, w_col, x_row, 0u);
    for (var g = 0u; g < p.w_groups; g++) {
        put(lane, next);
        if (g + 1u < p.w_groups) {
            next = bring(lane, begins.y, w_col, x_row, g + 1u);
        }
        workgroupBarrier();
        multiply(tx, ty, &acc);
        workgroupBarrier();
    }
    // A copy may be indexed by a variable; the sums themselves stay in registers.
    var sums = acc;
    for (var r = 0u; r < 4u; r++) {
        store(wid.z, m0 + ty + 8u * r, n0 + tx, 16u, sums[r]);
    }
}
