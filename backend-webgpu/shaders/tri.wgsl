// A triangle of each matrix, and zeros elsewhere.
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
    let row = i32(i / p.cols % p.rows);
    let col = i32(i % p.cols);
    let apart = select(row - col, col - row, p.upper == 1u);
    out[i] = select(0.0, x[i], apart >= i32(p.least));
}
