// The order of each row, a later pass: two neighbouring lists of p.list become one. Each index goes as far as its own place
// and the number of those of the other list that come before, of equals those of the first list.
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
    let which = col / p.list;
    let start = min((which ^ 1u) * p.list, p.cols);
    let own = sort_key(x[row + u32(lists[i])]);
    var low = start;
    var high = min(start + p.list, p.cols);
    while (low < high) {
        let middle = (low + high) / 2u;
        let other = sort_key(x[row + u32(lists[row + middle])]);
        if (other < own || (other == own && start < col)) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    ordered[row + (which & ~1u) * p.list + col % p.list + low - start] = lists[i];
}
