// The k largest elements of a row in order, or 0 and the ids -1 if one is not finite. A workgroup takes a row; or, where
// rows are long, a segment of one and writes its list (PART), and another takes the lists of a row (JOIN). Each
// invocation holds the best candidate of its own that has not been taken; a round takes the best of those, and only its
// owner moves on.
//!include lib/best.wgsl

//!if JOIN
// The value, as bits, and the column of a candidate of the list that an invocation has, or no column.
fn candidate(row: u32, lane: u32, at: u32) -> vec2<u32> {
    if (lane >= p.lists || at >= p.k) {
        return vec2<u32>(0u, NONE);
    }
    let entry = 2u * ((row * p.lists + lane) * p.k + at);
    return vec2<u32>(parts[entry], parts[entry + 1u]);
}
//!else
// The best column of an invocation that comes after (value, index) in order; of all of them if index is NONE.
fn search(first: u32, begin: u32, end: u32, value: f32, index: u32) -> u32 {
    var found = NONE;
    var best = 0.0;
    for (var c = begin; c < end; c += WG) {
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
//!end

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let group = wid.y * groups.x + wid.x;
//!if JOIN
    if (group >= p.rows) {
        return;
    }
    var at = 0u;
    let best = candidate(group, lane, at);
    var value = bitcast<f32>(best.x);
    var index = best.y;
//!else
    if (group >= p.rows * p.lists) {
        return;
    }
    let first = group / p.lists * p.cols;
    let segment = group % p.lists * p.segment;
    let begin = segment + lane;
    let end = min(segment + p.segment, p.cols);
    var index = search(first, begin, end, 0.0, NONE);
    var value = x[first + min(index, p.cols - 1u)];
//!end
    for (var round = 0u; round < p.k; round++) {
        workgroup_best(lane, value, index);
        let taken = best_index[0];
        if (lane == 0u) {
            let slot = group * p.k + round;
//!if PART
            parts[2u * slot] = bitcast<u32>(best_value[0]);
            parts[2u * slot + 1u] = taken;
//!else
            values[slot] = select(best_value[0], 0.0, taken == BROKEN);
            ids[slot] = select(i32(min(taken, p.cols - 1u)), -1, taken == BROKEN);
//!end
        }
        workgroupBarrier();
        if (taken == index && taken != NONE) {
//!if JOIN
            at++;
            let next = candidate(group, lane, at);
            value = bitcast<f32>(next.x);
            index = next.y;
//!else
            index = search(first, begin, end, value, index);
            value = x[first + min(index, p.cols - 1u)];
//!end
        }
    }
}
