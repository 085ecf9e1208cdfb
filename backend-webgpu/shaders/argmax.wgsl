// The index of the largest element of a row, the first of equals; a workgroup a row.
//!include lib/best.wgsl

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) wid: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = wid.y * groups.x + wid.x;
    if (row >= p.rows) {
        return;
    }
    let first = row * p.cols;
    var value = 0.0;
    var index = NONE;
    for (var c = lane; c < p.cols; c += WG) {
        let candidate = x[first + c];
        if (index == NONE || candidate > value) {
            value = candidate;
            index = c;
        }
    }
    workgroup_best(lane, value, index);
    if (lane == 0u) {
        let id = i32(min(best_index[0], p.cols - 1u));
//!if APPEND
        let next = step.position + step.rows;
        if (next < p.n_ctx) {
            out[next] = id;
        }
//!else
        out[row] = id;
//!end
    }
}
