// cumsum
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
    cols: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

var<workgroup> sums: array<f32, 64u>;

@compute @workgroup_size(64u)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let row = wid.y * groups.x + wid.x;
    if (row >= p.rows) {
        return;
    }
    let each = (p.cols + 64u - 1u) / 64u;
    let first = row * p.cols + min(lane * each, p.cols);
    let end = row * p.cols + min((lane + 1u) * each, p.cols);
    var own = 0.0;
    for (var i = first; i < end; i++) {
        own += x[i];
    }
    sums[lane] = own;
    workgroupBarrier();
    for (var apart = 1u; apart < 64u; apart <<= 1u) {
        var before = 0.0;
        if (lane >= apart) {
            before = sums[lane - apart];
        }
        workgroupBarrier();
        sums[lane] += before;
        workgroupBarrier();
    }
    var running = 0.0;
    if (lane > 0u) {
        running = sums[lane - 1u];
    }
    for (var i = first; i < end; i++) {
        running += x[i];
        out[i] = running;
    }
}
