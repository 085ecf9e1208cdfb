// qkv_append q8_0 rope neox blocks
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
}
struct Params {
    len: u32,
    cols: u32,
    head_dim: u32,
    n_dims: u32,
    table_rows: u32,
    q_cols: u32,
    kv_cols: u32,
    n_ctx: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> table: array<f32>;
@group(0) @binding(4) var<storage, read_write> q: array<f32>;
@group(0) @binding(5) var<storage, read_write> k_cache: array<u32>;
@group(0) @binding(6) var<storage, read_write> v_cache: array<u32>;

// Splits rows into Q, K and V, rotates Q and K, and appends K and V to their caches.
// Puts columns of the projection to Q, K and V where they belong: Q into the result, K and V into their caches, whose rows
// that are not real or beyond their end are dropped. 32u neighbours go together: with HALVES two, for they share a word,
// with BLOCKS a block.
// States in bytes: blocks of 32 with a scale. A row of 12u words has the bytes of all its blocks, then their scales from
// word 8u on.
// A scale as a half would hold it.
fn k_cache_half_of(scale: f32) -> f32 {
    if (scale < 6.1035156e-5) {
        return round(scale * 16777216.0) / 16777216.0;
    }
    let bits = bitcast<u32>(scale);
    return bitcast<f32>((bits + 0xfffu + ((bits >> 13u) & 1u)) & 0xffffe000u);
}

fn k_cache_write(row: u32, block: u32, values: array<f32, 32>) {
    var numbers = values;
    // Magnitudes are ordered as their bits are; those of NaN and infinity come last.
    var most = 0u;
    for (var i = 0u; i < 32u; i++) {
        most = max(most, bitcast<u32>(numbers[i]) & 0x7fffffffu);
    }
    let scale = bitcast<f32>(most) / 127.0;
    let inverse = select(0.0, 1.0 / scale, scale > 0.0);
    for (var w = 0u; w < 8u; w++) {
        var word = 0u;
        for (var i = 0u; i < 4u; i++) {
            let level = numbers[4u * w + i] * inverse;
            let byte = i32(sign(level) * floor(abs(level) + 0.5));
            word |= (bitcast<u32>(byte) & 0xffu) << (8u * i);
        }
        k_cache[row * 12u + 8u * block + w] = word;
    }
    // A block with a number that is not finite is NaN, so that nothing is hidden.
    k_cache[row * 12u + 8u + block] = select(bitcast<u32>(k_cache_half_of(scale)), 0x7fc00000u, most >= 0x7f800000u);
}

// States in bytes: blocks of 32 with a scale. A row of 12u words has the bytes of all its blocks, then their scales from
// word 8u on.
// A scale as a half would hold it.
fn v_cache_half_of(scale: f32) -> f32 {
    if (scale < 6.1035156e-5) {
        return round(scale * 16777216.0) / 16777216.0;
    }
    let bits = bitcast<u32>(scale);
    return bitcast<f32>((bits + 0xfffu + ((bits >> 13u) & 1u)) & 0xffffe000u);
}

fn v_cache_write(row: u32, block: u32, values: array<f32, 32>) {
    var numbers = values;
    // Magnitudes are ordered as their bits are; those of NaN and infinity come last.
    var most = 0u;
    for (var i = 0u; i < 32u; i++) {
        most = max(most, bitcast<u32>(numbers[i]) & 0x7fffffffu);
    }
    let scale = bitcast<f32>(most) / 127.0;
    let inverse = select(0.0, 1.0 / scale, scale > 0.0);
    for (var w = 0u; w < 8u; w++) {
        var word = 0u;
        for (var i = 0u; i < 4u; i++) {
            let level = numbers[4u * w + i] * inverse;
            let byte = i32(sign(level) * floor(abs(level) + 0.5));
            word |= (bitcast<u32>(byte) & 0xffu) << (8u * i);
        }
        v_cache[row * 12u + 8u * block + w] = word;
    }
    // A block with a number that is not finite is NaN, so that nothing is hidden.
    v_cache[row * 12u + 8u + block] = select(bitcast<u32>(v_cache_half_of(scale)), 0x7fc00000u, most >= 0x7f800000u);
}


fn put(row: u32, col: u32, value: array<f32, 32>) {
    if (col < p.q_cols) {
        for (var j = 0u; j < 32u; j++) {
            q[row * p.q_cols + col + j] = value[j];
        }
        return;
    }
    let position = step.position + row;
    if (row >= step.rows || position >= p.n_ctx) {
        return;
    }
    let block = (col - p.q_cols) / 32u;
    if (col < p.q_cols + p.kv_cols) {
        k_cache_write(position, block, value);
    } else {
        v_cache_write(position, block - p.kv_cols / 32u, value);
    }
}
// Element i of x after the rotation of its head; position is that of its row, col its column. With NORM elements are
// normed before.
fn normed(i: u32, col: u32) -> f32 {
    return x[i];
}

fn rotated(i: u32, col: u32, position: u32) -> f32 {
    let channel = col % p.head_dim;
    if (channel >= p.n_dims) {
        return normed(i, col);
    }
    let half = p.n_dims / 2u;
    let pair = channel % half;
    let second = channel >= half;
    let distance = half;
    let at = min(position, p.table_rows - 1u) * p.n_dims + 2u * pair;
    let c = table[at];
    let s = table[at + 1u];
    if (second) {
        return normed(i - distance, col - distance) * s + normed(i, col) * c;
    }
    return normed(i, col) * c - normed(i + distance, col + distance) * s;
}

// Column `col` of row `row` as it goes on.
fn turned(row: u32, col: u32) -> f32 {
    let i = row * p.cols + col;
    if (col < p.q_cols + p.kv_cols) {
        return rotated(i, col, step.position + row);
    }
    return x[i];
}

@compute @workgroup_size(64u)
fn main(
    @builtin(workgroup_id) wid: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = 32u * ((wid.y * groups.x + wid.x) * 64u + lane);
    if (i >= p.len) {
        return;
    }
    let row = i / p.cols;
    let col = i % p.cols;
    var block: array<f32, 32>;
    for (var j = 0u; j < 32u; j++) {
        block[j] = turned(row, col + j);
    }
    put(row, col, block);
}
