// Elements of each row by their columns; 0 for what is none. An invocation an element.

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
    let id = u32(ids[i]);
    let value = x[i / p.k * p.cols + min(id, p.cols - 1u)];
    out[i] = select(0.0, value, id < p.cols);
}
