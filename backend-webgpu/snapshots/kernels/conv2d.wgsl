// conv2d
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
    channels: u32,
    image0: u32,
    image1: u32,
    kernel0: u32,
    kernel1: u32,
    places0: u32,
    places1: u32,
    stride0: u32,
    stride1: u32,
    before0: u32,
    before1: u32,
    dilation0: u32,
    dilation1: u32,
    results: u32,
    of_group: u32,
    own: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> kernel: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

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
    let places = p.places0 * p.places1;
    let result = i / places % p.results;
    let plane = i / places / p.results * p.channels + result / p.of_group * p.own;
    let first_row = i / p.places1 % p.places0 * p.stride0 - p.before0;
    let first_col = i % p.places1 * p.stride1 - p.before1;
    let taps = p.kernel0 * p.kernel1;
    var sum = 0.0;
    for (var tap = 0u; tap < taps; tap++) {
        let row = first_row + tap / p.kernel1 * p.dilation0;
        let col = first_col + tap % p.kernel1 * p.dilation1;
        if (row < p.image0 && col < p.image1) {
            for (var channel = 0u; channel < p.own; channel++) {
                let factor = kernel[(result * p.own + channel) * taps + tap];
                sum += factor * x[((plane + channel) * p.image0 + row) * p.image1 + col];
            }
        }
    }
    out[i] = sum;
}
