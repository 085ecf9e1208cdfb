// Zeros before and after the elements of each dimension, or what is there already (OVER); CIRCULAR, they go round.
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
//!if CIRCULAR
    let d3 = (i % p.dim3 + p.shift3) % p.x3;
    let d2 = (i / p.dim3 % p.dim2 + p.shift2) % p.x2;
    let d1 = (i / (p.dim3 * p.dim2) % p.dim1 + p.shift1) % p.x1;
    let d0 = (i / (p.dim3 * p.dim2 * p.dim1) + p.shift0) % p.x0;
    out[i] = x[((d0 * p.x1 + d1) * p.x2 + d2) * p.x3 + d3];
//!else
    // What lies before x wraps to large numbers.
    let d3 = i % p.dim3 - p.before3;
    let d2 = i / p.dim3 % p.dim2 - p.before2;
    let d1 = i / (p.dim3 * p.dim2) % p.dim1 - p.before1;
    let d0 = i / (p.dim3 * p.dim2 * p.dim1) - p.before0;
    if (d0 < p.x0 && d1 < p.x1 && d2 < p.x2 && d3 < p.x3) {
        out[i] = x[((d0 * p.x1 + d1) * p.x2 + d2) * p.x3 + d3];
    } else {
//!if OVER
        out[i] = under[i];
//!else
        out[i] = 0.0;
//!end
    }
//!end
}
