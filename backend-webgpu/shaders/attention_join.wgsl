// Joins the parts of attention of one query, once for all workgroups of the product that follows: the row stands behind the
// parts.
//!include lib/join.wgsl

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let i = (wid.y * groups.x + wid.x) * WG + lane;
    if (i < HEADS * VALUES) {
        parts[ROW_AT + i] = joined(i, split_count(visible(0u)));
    }
}
