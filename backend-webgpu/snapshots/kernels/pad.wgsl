// pad circular
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
    dim0: u32,
    dim1: u32,
    dim2: u32,
    dim3: u32,
    x0: u32,
    x1: u32,
    x2: u32,
    x3: u32,
    before0: u32,
    before1: u32,
    before2: u32,
    before3: u32,
    shift0: u32,
    shift1: u32,
    shift2: u32,
    shift3: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

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
    let d3 = (i % p.dim3 + p.shift3) % p.x3;
    let d2 = (i / p.dim3 % p.dim2 + p.shift2) % p.x2;
    let d1 = (i / (p.dim3 * p.dim2) % p.dim1 + p.shift1) % p.x1;
    let d0 = (i / (p.dim3 * p.dim2 * p.dim1) + p.shift0) % p.x0;
    out[i] = x[((d0 * p.x1 + d1) * p.x2 + d2) * p.x3 + d3];
}
