// The experts of a token and their weights, or the ids -1 and 0 if a logit is not finite; a workgroup a row. Each
// invocation holds the best of its own columns that has not been taken; a round takes the best of those, and only its
// owner searches again.
//!include lib/best.wgsl
//!include lib/reduce.wgsl
//!function unary_sigmoid

const LOWEST: f32 = -3.4028234e38;
var<workgroup> chosen: array<f32, MOST>;

// The score of a logit, with what a softmax over all needs: the highest, and the sum of the powers.
fn score(logit: f32, highest: f32, total: f32) -> f32 {
//!if SOFTMAX
    return exp(logit - highest) / total;
//!else
//!if SIGMOID
    return unary_sigmoid(logit);
//!else
    return logit;
//!end
//!end
}

//!if BIASED || GROUPED
// The score of a column with its bias.
fn biased(first: u32, c: u32, highest: f32, total: f32) -> f32 {
    let own = score(logits[first + c], highest, total);
//!if BIASED
    return own + bias[c];
//!else
    return own;
//!end
}

//!end
//!if GROUPED
var<workgroup> group_score: array<f32, MOST>;
var<workgroup> group_open: array<u32, MOST>;

// Opens the groups whose two best columns have the largest sums.
fn open_groups(first: u32, lane: u32, highest: f32, total: f32) {
    for (var g = lane; g < p.groups; g += WG) {
        var best = LOWEST;
        var second = LOWEST;
        for (var c = g * p.group; c < (g + 1u) * p.group; c++) {
            let own = biased(first, c, highest, total);
            second = max(second, min(own, best));
            best = max(best, own);
        }
        group_score[g] = best + second;
    }
    workgroupBarrier();
    for (var g = lane; g < p.groups; g += WG) {
        var before = 0u;
        for (var other = 0u; other < p.groups; other++) {
            before += select(0u, 1u, beats(group_score[other], other, group_score[g], g));
        }
        group_open[g] = select(0u, 1u, before < p.groups_used);
    }
    workgroupBarrier();
}

//!end
// What the choice goes by. Without a bias, the order of the scores is that of the logits.
fn key(first: u32, c: u32, highest: f32, total: f32) -> f32 {
//!if BIASED
    return biased(first, c, highest, total);
//!else
    return logits[first + c];
//!end
}

// The best column of an invocation that comes after (value, index) in order; of all of them if index is NONE.
fn search(first: u32, lane: u32, value: f32, index: u32, highest: f32, total: f32) -> u32 {
    var found = NONE;
    var best = 0.0;
    for (var c = lane; c < p.cols; c += WG) {
        if (!is_finite(logits[first + c])) {
            return BROKEN;
        }
//!if GROUPED
        if (group_open[c / p.group] == 0u) {
            continue;
        }
//!end
        let candidate = key(first, c, highest, total);
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
    var highest = LOWEST;
    var total = 0.0;
//!if !SIGMOID
    for (var c = lane; c < p.cols; c += WG) {
        highest = max(highest, logits[first + c]);
    }
    highest = workgroup_max(lane, highest);
//!end
//!if SOFTMAX
    for (var c = lane; c < p.cols; c += WG) {
        total += exp(logits[first + c] - highest);
    }
    total = workgroup_sum(lane, total);
//!end
//!if GROUPED
    open_groups(first, lane, highest, total);
//!end
    var index = search(first, lane, 0.0, NONE, highest, total);
    var value = key(first, min(index, p.cols - 1u), highest, total);
    for (var round = 0u; round < p.k; round++) {
        workgroup_best(lane, value, index);
        let taken = best_index[0];
        if (lane == 0u) {
            let id = min(taken, p.cols - 1u);
//!if SOFTMAX || SIGMOID
            let own = score(logits[first + id], highest, total);
//!else
            let own = exp(logits[first + id] - highest);
//!end
            ids[row * p.k + round] = select(i32(id), -1, taken == BROKEN);
            chosen[round] = select(own, 0.0, taken == BROKEN);
        }
        workgroupBarrier();
        if (taken == index && taken != NONE) {
            index = search(first, lane, value, index, highest, total);
            value = key(first, min(index, p.cols - 1u), highest, total);
        }
    }
    if (lane != 0u) {
        return;
    }
    var sum = 0.0;
    for (var i = 0u; i < p.k; i++) {
        sum += chosen[i];
    }
//!if !NORMALISED
    sum = 1.0;
//!end
    let by = max(sum, p.least_sum);
    for (var i = 0u; i < p.k; i++) {
        shares[row * p.k + i] = chosen[i] / by * p.scale;
    }
}
