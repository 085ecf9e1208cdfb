// What RESULT says of the operands' elements that belong to element i, after LINES.
//!include lib/place.wgsl

fn element(i: u32) -> f32 {
    let d3 = i % p.dim3;
    let d2 = i / p.dim3 % p.dim2;
    let d1 = i / (p.dim3 * p.dim2) % p.dim1;
    let d0 = i / (p.dim3 * p.dim2 * p.dim1);
LINES
    return RESULT;
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let i = (wid.y * groups.x + wid.x) * WG + lane;
    if (i >= p.len) {
        return;
    }
    out[i] = element(i);
}
