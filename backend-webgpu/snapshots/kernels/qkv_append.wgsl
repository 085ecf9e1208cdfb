// qkv_append q4_0 rope neox blocks
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

fn position_of(row: u32) -> u32 {
    return step.position + row;
}

fn before_sequence(row: u32, capacity: u32) -> u32 {
    return 0u;
}
fn k_cache_half_of(value: f32) -> f32 {
    let size = abs(value);
    let bits = bitcast<u32>(size);
    let near = (bits + 0xfffu + ((bits >> 13u) & 1u)) & 0xffffe000u;
    var rounded = select(bitcast<f32>(near), size * 3.0e38, near >= 0x47800000u);
    if (size < 6.1035156e-5) {
        rounded = round(size * 16777216.0) / 16777216.0;
    }
    return select(rounded, -rounded, value < 0.0);
}

fn k_cache_level_of(value: f32, inverse: f32) -> u32 {
    return u32(clamp(floor(value * inverse + (f32(8) + 0.5)), 0.0, f32(15)));
}

fn k_cache_write(row: u32, block: u32, values: array<f32, 32>) {
    var numbers = values;
    var most = 0u;
    var farthest = 0.0;
    var low = numbers[0];
    var high = low;
    for (var i = 0u; i < 32u; i++) {
        let size = bitcast<u32>(numbers[i]) & 0x7fffffffu;
        farthest = select(farthest, numbers[i], size > most);
        most = max(most, size);
        low = min(low, numbers[i]);
        high = max(high, numbers[i]);
    }
    let finite = most < 0x7f800000u;
    let scale = farthest / -f32(8);
    k_cache[row * 8u + 4u + block] = select(0x7fc00000u, bitcast<u32>(k_cache_half_of(scale)), finite);
    let inverse = select(1.0 / scale, 0.0, scale == 0.0);
    let first = row * 8u + 4 * block;
    var fifths = 0u;
    for (var w = 0u; w < 4u; w++) {
        var word = 0u;
        for (var i = 0u; i < 8u; i++) {
            let level = k_cache_level_of(numbers[8u * w + i], inverse);
            word |= (level & 15u) << (4u * i);
            fifths |= (level >> 4u) << (8u * w + i);
        }
        k_cache[first + w] = word;
    }
}

fn v_cache_half_of(value: f32) -> f32 {
    let size = abs(value);
    let bits = bitcast<u32>(size);
    let near = (bits + 0xfffu + ((bits >> 13u) & 1u)) & 0xffffe000u;
    var rounded = select(bitcast<f32>(near), size * 3.0e38, near >= 0x47800000u);
    if (size < 6.1035156e-5) {
        rounded = round(size * 16777216.0) / 16777216.0;
    }
    return select(rounded, -rounded, value < 0.0);
}

fn v_cache_level_of(value: f32, inverse: f32) -> u32 {
    return u32(clamp(floor(value * inverse + (f32(8) + 0.5)), 0.0, f32(15)));
}

fn v_cache_write(row: u32, block: u32, values: array<f32, 32>) {
    var numbers = values;
    var most = 0u;
    var farthest = 0.0;
    var low = numbers[0];
    var high = low;
    for (var i = 0u; i < 32u; i++) {
        let size = bitcast<u32>(numbers[i]) & 0x7fffffffu;
        farthest = select(farthest, numbers[i], size > most);
        most = max(most, size);
        low = min(low, numbers[i]);
        high = max(high, numbers[i]);
    }
    let finite = most < 0x7f800000u;
    let scale = farthest / -f32(8);
    v_cache[row * 8u + 4u + block] = select(0x7fc00000u, bitcast<u32>(v_cache_half_of(scale)), finite);
    let inverse = select(1.0 / scale, 0.0, scale == 0.0);
    let first = row * 8u + 4 * block;
    var fifths = 0u;
    for (var w = 0u; w < 4u; w++) {
        var word = 0u;
        for (var i = 0u; i < 8u; i++) {
            let level = v_cache_level_of(numbers[8u * w + i], inverse);
            word |= (level & 15u) << (4u * i);
            fifths |= (level >> 4u) << (8u * w + i);
        }
        v_cache[first + w] = word;
    }
}


fn put(row: u32, col: u32, value: array<f32, 32>) {
    if (col < p.q_cols) {
        for (var j = 0u; j < 32u; j++) {
            q[row * p.q_cols + col + j] = value[j];
        }
        return;
    }
    let position = position_of(row);
    if (row >= step.rows || position >= p.n_ctx) {
        return;
    }
    let at = before_sequence(row, p.n_ctx) + position;
    let block = (col - p.q_cols) / 32u;
    if (col < p.q_cols + p.kv_cols) {
        k_cache_write(at, block, value);
    } else {
        v_cache_write(at, block - p.kv_cols / 32u, value);
    }
}
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

fn turned(row: u32, col: u32) -> f32 {
    let i = row * p.cols + col;
    if (col < p.q_cols + p.kv_cols) {
        return rotated(i, col, position_of(row));
    }
    return x[i];
}

@compute @workgroup_size(64u)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
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
