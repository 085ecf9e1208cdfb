// A few rows of x made ready for the products that follow, a workgroup a row: normed as a workgroup of one row does it, and
// with neighbouring groups beside each other, so that invocations which share a row of weights read x together.
//!include lib/row.wgsl
//!include lib/ready.wgsl

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    x_row = group_id.x + step.origin.x;
    let begun = row_begin(lane);
//!if SUMMED
    for (var i = lane; 4u * i < p.k; i += WG) {
        total[row_first(p.k / 4u) + i] = x4(i);
    }
//!end
    for (var i = lane; i < 8u * p.w_groups; i += WG) {
        ready[ready_at(x_row, i)] = normed4(i, begun);
    }
    let scale = row_scale(lane, begun);
    if (lane == 0u) {
        ready[scale_at(x_row)] = vec4<f32>(scale);
    }
}
