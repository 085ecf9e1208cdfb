// The k largest elements of a row in order, or 0 and the ids -1 if one is not finite; a workgroup a row. Each
// invocation holds the best of its own columns that has not been taken; a round takes the best of those, and only its
// owner searches again.
//!include lib/best.wgsl

// The best column of an invocation that comes after (value, index) in order; of all of them if index is NONE.
fn search(first: u32, lane: u32, value: f32, index: u32) -> u32 {
    var found = NONE;
    var best = 0.0;
    for (var c = lane; c < p.cols; c += WG) {
        let candidate = x[first + c];
        if (!is_finite(candidate)) {
            return BROKEN;
        }
        let left = index == NONE || beats(value, index, candidate, c);
        if (left && beats(candidate, c, best, found)) {
            best = candidate;
            found = c;
        }
    }
    return found;
}

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
    let first = row * p.cols;
    var index = search(first, lane, 0.0, NONE);
    var value = x[first + min(index, p.cols - 1u)];
    for (var round = 0u; round < p.k; round++) {
        workgroup_best(lane, value, index);
        let taken = best_index[0];
        if (lane == 0u) {
            values[row * p.k + round] = select(best_value[0], 0.0, taken == BROKEN);
            ids[row * p.k + round] = select(i32(min(taken, p.cols - 1u)), -1, taken == BROKEN);
        }
        workgroupBarrier();
        if (taken == index && taken != NONE) {
            index = search(first, lane, value, index);
            value = x[first + min(index, p.cols - 1u)];
        }
    }
}
