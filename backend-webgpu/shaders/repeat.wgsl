// A tensor as a tile.
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
    // Dimensions of the result are multiples of those of x.
    let d3 = i % p.x3;
    let d2 = i / p.dim3 % p.x2;
    let d1 = i / (p.dim3 * p.dim2) % p.x1;
    let d0 = i / (p.dim3 * p.dim2 * p.dim1) % p.x0;
    out[i] = x[((d0 * p.x1 + d1) * p.x2 + d2) * p.x3 + d3];
}
