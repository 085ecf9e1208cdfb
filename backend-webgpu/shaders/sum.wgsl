// The sum of a row, a workgroup a row.
//!include lib/reduce.wgsl

@compute @workgroup_size(WG)
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
    var sum = 0.0;
    for (var c = lane; c < p.cols; c += WG) {
        sum += x[row * p.cols + c];
    }
    let total = workgroup_sum(lane, sum);
    if (lane == 0u) {
        out[row] = total;
    }
}
