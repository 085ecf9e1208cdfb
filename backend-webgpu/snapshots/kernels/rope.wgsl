// rope rope neox
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
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> table: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

fn position_of(row: u32) -> u32 {
    return step.position + row;
}

fn before_sequence(row: u32, capacity: u32) -> u32 {
    return 0u;
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

@compute @workgroup_size(64u)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let i = (wid.y * groups.x + wid.x) * 64u + lane;
    if (i >= p.len) {
        return;
    }
    out[i] = rotated(i, i % p.cols, position_of(i / p.cols));
}
