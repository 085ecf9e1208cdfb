// Joins the parts of attention of one query or a few, once for all workgroups of the product that follows: the rows stand
// behind the parts.
//!include lib/join.wgsl
//!if SEVERAL
//!include lib/ready.wgsl
//!end

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let i = (wid.y * groups.x + wid.x) * WG + lane;
//!if SEVERAL
    let row = i / (8u * p.w_groups);
    let at = i % (8u * p.w_groups);
    if (row >= QUERIES) {
        return;
    }
    // Zeros beyond the row's end.
    let value = joined(row * HEADS * VALUES + min(at, HEADS * VALUES - 1u), split_count(visible(row)));
    parts[ready_at(row, at)] = select(vec4<f32>(0.0), value, at < HEADS * VALUES);
    if (at == 0u) {
        parts[scale_at(row)] = vec4<f32>(1.0);
    }
//!else
    if (i < HEADS * VALUES) {
        parts[ROW_AT + i] = joined(i, split_count(visible(0u)));
    }
//!end
}
