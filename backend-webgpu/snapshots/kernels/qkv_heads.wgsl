// qkv_heads q4_0 subgroups norm norm_values rope neox blocks
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
    eps: f32,
    rows: u32,
    heads: u32,
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
@group(0) @binding(2) var<storage, read> q_gamma: array<f32>;
@group(0) @binding(3) var<storage, read> k_gamma: array<f32>;
@group(0) @binding(4) var<storage, read> v_gamma: array<f32>;
@group(0) @binding(5) var<storage, read> x: array<f32>;
@group(0) @binding(6) var<storage, read> table: array<f32>;
@group(0) @binding(7) var<storage, read_write> q: array<f32>;
@group(0) @binding(8) var<storage, read_write> k_cache: array<u32>;
@group(0) @binding(9) var<storage, read_write> v_cache: array<u32>;

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
    k_cache[row * 12u + 8u + block] = select(0x7fc00000u, bitcast<u32>(k_cache_half_of(scale)), finite);
    let inverse = select(1.0 / scale, 0.0, scale == 0.0);
    let first = row * 12u + 4 * block;
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
    v_cache[row * 12u + 8u + block] = select(0x7fc00000u, bitcast<u32>(v_cache_half_of(scale)), finite);
    let inverse = select(1.0 / scale, 0.0, scale == 0.0);
    let first = row * 12u + 4 * block;
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

var<private> head_scale: f32 = 1.0;

fn normed(i: u32, col: u32) -> f32 {
    let channel = col % p.head_dim;
    if (col < p.q_cols) {
        return x[i] * head_scale * q_gamma[channel];
    }
    if (col < p.q_cols + p.kv_cols) {
        return x[i] * head_scale * k_gamma[channel];
    }
    return x[i] * head_scale * v_gamma[channel];
    return x[i];
}

fn turned(row: u32, col: u32) -> f32 {
    let i = row * p.cols + col;
    if (col < p.q_cols + p.kv_cols) {
        return rotated(i, col, position_of(row));
    }
    return normed(i, col);
}

@compute @workgroup_size(64u)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let job = wid.y * groups.x + wid.x;
    if (job >= p.heads * p.rows) {
        return;
    }
    let row = job / p.heads;
    let first = job % p.heads * p.head_dim;
    let normed_cols = p.cols;
    if (first < normed_cols) {
        let start = row * p.cols + first;
        let count = p.head_dim;
        var squares = 0.0;
        for (var c = lane; c < count; c += 64u) {
            let value = x[start + c];
            squares += value * value;
        }
        head_scale = 1.0 / sqrt(workgroup_sum(lane, squares) / f32(count) + p.eps);
    }
    for (var c = 32u * lane; c < p.head_dim; c += 32u * 64u) {
        let col = first + c;
        var block = array<f32, 32>();
        for (var j = 0u; j < 32u; j++) {
            block[j] = turned(row, col + j);
        }
        put(row, col, block);
    }
}
