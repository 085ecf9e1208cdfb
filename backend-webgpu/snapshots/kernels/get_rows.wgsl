// get_rows Q8_0 ids
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
    rows: u32,
    d: u32,
    w_groups: u32,
    w_plane0: u32,
    w_plane1: u32,
    w_plane2: u32,
    w_plane3: u32,
    w_rows: u32,
    w_first: u32,
    w_count: u32,
    n_ctx: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> ids: array<i32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;


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
fn position_of(row: u32) -> u32 {
    return step.position + row;
}

fn before_sequence(row: u32, capacity: u32) -> u32 {
    return 0u;
}

fn row_id(i: u32) -> u32 {
    return u32(max(ids[i], 0));
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


@compute @workgroup_size(64u)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let index = (wid.y * groups.x + wid.x) * 64u + lane;
    let per_row = (p.d + 31u) / 32u;
    let row = index / per_row;
    let group = index % per_row;
    if (row >= p.rows) {
        return;
    }
    let id = min(row_id(row), p.w_rows - 1u);
    if (id < p.w_first || id >= p.w_first + p.w_count) {
        return;
    }
    var values = w_decode_row(id - p.w_first, group);
    for (var e = 0u; e < 32u; e++) {
        let col = group * 32u + e;
        if (col < p.d) {
            out[row * p.d + col] = values[e / 4u][e % 4u];
        }
    }
}
