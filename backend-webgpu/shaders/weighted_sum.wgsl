// The rows of a token added up, each with its weight.

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
    let row = i / p.cols;
    var sum = 0.0;
    for (var c = row * p.choices; c < (row + 1u) * p.choices; c++) {
        sum += shares[c] * x[c * p.cols + i % p.cols];
    }
    out[i] = sum;
}
