// Elementwise arithmetic; repeated dimensions have a step of 0.
//!function ELEMENT

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
    let d3 = i % p.dim3;
    let d2 = i / p.dim3 % p.dim2;
    let d1 = i / (p.dim3 * p.dim2) % p.dim1;
    let d0 = i / (p.dim3 * p.dim2 * p.dim1);
    let at_a = d0 * p.a_step0 + d1 * p.a_step1 + d2 * p.a_step2 + d3 * p.a_step3;
    let at_b = d0 * p.b_step0 + d1 * p.b_step1 + d2 * p.b_step2 + d3 * p.b_step3;
    out[i] = ELEMENT(a[at_a], b[at_b]);
}
