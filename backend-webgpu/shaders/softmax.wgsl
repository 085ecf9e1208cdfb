// Softmax of masked rows, a workgroup a row. Masks and rows without keys need no infinity: sums start at the lowest
// finite number, and a sum of 0 gives zeros.
//!include lib/reduce.wgsl
//!include lib/masking.wgsl

const LOWEST: f32 = -3.4028234e38;

fn score(first: u32, i: u32, c: u32) -> f32 {
    let s = capped(p.scale * x[first + c]);
//!if EXPLICIT
    return max(s + mask[i * p.n + c], HIDDEN);
//!else
    return s;
//!end
}

fn weight(score: f32, highest: f32) -> f32 {
//!if EXPLICIT
    return select(exp(score - highest), 0.0, score == HIDDEN);
//!else
    return exp(score - highest);
//!end
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
    let first = row * p.n;
    let i = row % p.m;
    let range = visible(i);
//!if SINKS
    let sink = sinks[row / p.m % p.heads];
//!else
    let sink = LOWEST;
//!end
    var highest = sink;
    for (var c = range.x + lane; c < range.y; c += WG) {
        highest = max(highest, score(first, i, c));
    }
    highest = workgroup_max(lane, highest);
    var sum = 0.0;
    for (var c = range.x + lane; c < range.y; c += WG) {
        sum += weight(score(first, i, c), highest);
    }
    sum = workgroup_sum(lane, sum);
//!if SINKS
    sum += exp(sink - highest);
//!end
    let scale = select(1.0 / sum, 0.0, sum == 0.0);
    for (var c = lane; c < p.n; c += WG) {
        var value = 0.0;
        if (c >= range.x && c < range.y) {
            value = weight(score(first, i, c), highest) * scale;
        }
        out[first + c] = value;
    }
}
