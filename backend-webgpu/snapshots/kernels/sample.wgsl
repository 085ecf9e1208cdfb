// sample min_p
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
    k: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> values: array<f32>;
@group(0) @binding(3) var<storage, read> ids: array<i32>;
@group(0) @binding(4) var<storage, read_write> out: array<i32>;
@group(0) @binding(5) var<storage, read> penalties: array<f32>;

fn is_finite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}
fn position_of(row: u32) -> u32 {
    return step.position + row;
}

fn before_sequence(row: u32, capacity: u32) -> u32 {
    return 0u;
}
fn drawn_at(row: u32) -> u32 {
    return position_of(select(row, step.rows - 1u, p.rows == 1u));
}

fn seed_of(row: u32) -> vec2<u32> {
    return vec2<u32>(step.seed_lo, step.seed_hi);
}

fn top_k_of(row: u32) -> u32 {
    return step.top_k;
}

fn top_p_of(row: u32) -> f32 {
    return step.top_p;
}

fn temperature_of(row: u32) -> f32 {
    return step.temperature;
}

fn pcg(x: u32) -> u32 {
    let state = x * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return (word >> 22u) ^ word;
}

fn uniform_draw(row: u32) -> f32 {
    let seed = seed_of(row);
    let h = pcg(drawn_at(row) ^ pcg(seed.x ^ pcg(seed.y)));
    return f32(h >> 8u) / 16777216.0;
}

fn weight(row: u32, i: u32) -> f32 {
    return exp((values[row * p.k + i] - values[row * p.k]) / temperature_of(row));
}

fn choose(row: u32) -> u32 {
    if (!(temperature_of(row) > 0.0)) {
        return 0u;
    }
    let n = select(p.k, min(top_k_of(row), p.k), top_k_of(row) > 0u);
    var total = 0.0;
    for (var i = 0u; i < n; i++) {
        total += weight(row, i);
    }
    var kept = n;
    var stayed = 0.0;
    for (var i = 0u; i < n; i++) {
        if (i > 0u && weight(row, i) < penalties[before_sequence(row, 8u) + 7u]) {
            kept = i;
            break;
        }
        stayed += weight(row, i);
        if (stayed >= top_p_of(row) * total) {
            kept = i + 1u;
            break;
        }
    }
    let draw = uniform_draw(row) * stayed;
    var running = 0.0;
    for (var i = 0u; i < kept; i++) {
        running += weight(row, i);
        if (running > draw) {
            return i;
        }
    }
    return kept - 1u;
}

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let wid = group_id + step.origin;
    let row = wid.y * groups.x + wid.x;
    if (row >= p.rows) {
        return;
    }
    for (var i = 0u; i < p.k; i++) {
        if (!is_finite(values[row * p.k + i])) {
            out[row] = -1;
            return;
        }
    }
    out[row] = ids[row * p.k + choose(row)];
}
