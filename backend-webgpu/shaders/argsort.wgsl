// The order of each row, first pass: lists of p.list neighbours, in order by the number of those that come before.
//!include lib/sort_key.wgsl

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
    let row = i - i % p.cols;
    let col = i - row;
    let first = col - col % p.list;
    let end = min(first + p.list, p.cols);
    let own = sort_key(x[i]);
    var place = first;
    for (var c = first; c < end; c++) {
        let other = sort_key(x[row + c]);
        place += u32(other < own || (other == own && c < col));
    }
    ordered[row + place] = i32(col);
}
