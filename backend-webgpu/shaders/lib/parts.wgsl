// The row of x as attention left it, in parts. Each workgroup joins all of it.
//!include lib/join.wgsl

// Fills the workgroup's memory, with zeros beyond the row's end.
fn parts_join(lane: u32) {
    let count = split_count(visible(0u));
    let last = HEADS * VALUES - 1u;
    for (var i = lane; i < 8u * p.w_groups; i += WG) {
        staged[staged_at(i)] = select(vec4<f32>(0.0), joined(min(i, last), count), i <= last);
    }
    workgroupBarrier();
}
