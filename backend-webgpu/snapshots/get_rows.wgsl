// The values that differ from step to step.
struct Step {
    position: u32,
    rows: u32,
    top_k: u32,
    top_p: f32,
    temperature: f32,
    seed_lo: u32,
    seed_hi: u32,
    reserved: u32,
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

// Rows of a table; an invocation decodes one group of 32 elements. A table in several chunks takes one dispatch each,
// which writes only the rows that its chunk has.
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

// The four lowest nibbles of a word.
fn nibbles(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u));
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

// The scale and the minimum of sub-block i of the eight of a Q4_K block with a head.
fn q4_k_scale(head: vec4<u32>, i: u32) -> vec2<f32> {
    let shift = (i & 3u) * 8u;
    let k0 = (head.y >> shift) & 255u;
    let k1 = (head.z >> shift) & 255u;
    let k2 = (head.w >> shift) & 255u;
    // The last four sub-blocks have their high bits in the bytes of the first four.
    let late = (i & 4u) != 0u;
    let scale = select(k0 & 63u, (k2 & 15u) | ((k0 >> 6u) << 4u), late);
    let minimum = select(k1 & 63u, (k2 >> 4u) | ((k1 >> 6u) << 4u), late);
    return half_pair(head.x) * vec2<f32>(vec2<u32>(scale, minimum));
}
// The row of the table that row i of the result comes from; ids below 0 count as 0.
fn row_id(i: u32) -> u32 {
    return u32(max(ids[i], 0));
}
// Q6_K: x = (d * scale) * (q - 32); a group has two scales, one for each 16 elements.
fn w_decode32(group: u32) -> array<vec4<f32>, 8> {
    let q = w[p.w_plane0 + group];
    let pairs = w[p.w_plane1 + (group >> 1u)];
    let h = select(pairs.xy, pairs.zw, (group & 1u) == 1u);
    let scales = w[p.w_plane2 + (group >> 3u)][(group & 7u) >> 1u] >> ((group & 1u) * 16u);
    let both = signed_bytes(scales);
    let d = half_of(w[p.w_plane3 + (group >> 6u)], (group >> 3u) & 7u);
    let a = d * both.x;
    let b = d * both.y;
    return array<vec4<f32>, 8>(
        a * (sixes(q.x, h.x) - 32.0), a * (sixes(q.x >> 16u, h.x >> 8u) - 32.0),
        a * (sixes(q.y, h.x >> 16u) - 32.0), a * (sixes(q.y >> 16u, h.x >> 24u) - 32.0),
        b * (sixes(q.z, h.y) - 32.0), b * (sixes(q.z >> 16u, h.y >> 8u) - 32.0),
        b * (sixes(q.w, h.y >> 16u) - 32.0), b * (sixes(q.w >> 16u, h.y >> 24u) - 32.0));
}

// Elements 32 * group .. 32 * group + 31 of a row.
fn w_decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return w_decode32(row * p.w_groups + group);
}


@compute @workgroup_size(64u)
fn main(
    @builtin(workgroup_id) wid: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
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
