// attention_join several sinks
// The values that differ from step to step.
struct Step {
    position: u32,
    rows: u32,
    top_k: u32,
    top_p: f32,
    temperature: f32,
    seed_lo: u32,
    seed_hi: u32,
    sequence: u32,
    // Where the workgroups of this dispatch begin, if it is a part of a kernel; else 0.
    origin: vec3<u32>,
}
struct Params {
    m: u32,
    n: u32,
    causal: u32,
    window: u32,
    cached: u32,
    scale: f32,
    softcap: f32,
    w_groups: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read_write> parts: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> sinks: array<f32>;

// Joins the parts of attention of one query or a few, once for all workgroups of the product that follows: the rows stand
// behind the parts.
// What attention left, joined: for each query and head the weighted sums of up to 32u parts of the keys, each with its
// highest score and its sum of weights.
// How one query's keys are cut into parts that workgroups score apart.
// The cap of scores, and which of them count.
// Where the rows of a step are in their texts. With SEQUENCES each row is of a sequence of its own, and states hold those of
// all sequences one after another.
fn position_of(row: u32) -> u32 {
    return step.position + row;
}

// Rows of a state before those of the row's sequence; each has `capacity` of them.
fn before_sequence(row: u32, capacity: u32) -> u32 {
    return 0u;
}
// Some drivers compute tanh from exponentials that overflow. NaN, which a clamp may lose, stays NaN; it is told by its bits.
fn safe_tanh(x: f32) -> f32 {
    let nan = (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
    return select(tanh(clamp(x, -15.0, 15.0)), x, nan);
}

// Caps a score; `p.softcap` = 0 means no cap.
fn capped(score: f32) -> f32 {
    if (p.softcap > 0.0) {
        return p.softcap * safe_tanh(score / p.softcap);
    }
    return score;
}

// The half-open range of the p.n keys that query row i of p.m may see.
fn visible(i: u32) -> vec2<u32> {
    var filled = p.n;
    var at = max(p.n + i, p.m) - p.m;
    if (p.cached != 0u) {
        at = position_of(i);
        filled = min(step.position + step.rows, p.n);
    }
    var start = 0u;
    var end = filled;
    if (p.causal != 0u) {
        end = min(filled, at + 1u);
        if (p.window != 0u) {
            start = max(at + 1u, p.window) - p.window;
        }
    } else if (p.window != 0u) {
        end = min(filled, at + p.window / 2u + 1u);
        start = max(at, p.window / 2u) - p.window / 2u;
    }
    return vec2<u32>(min(start, end), end);
}

const LOWEST: f32 = -3.4028234e38;

// Keys of a part: as many as 32u parts need, and no fewer than a workgroup scores at a time.
fn split_keys(range: vec2<u32>) -> u32 {
    return max(64u, (range.y - range.x + 32u - 1u) / 32u);
}

// Parts that have keys; at least one, which then is empty.
fn split_count(range: vec2<u32>) -> u32 {
    let keys = split_keys(range);
    return max((range.y - range.x + keys - 1u) / keys, 1u);
}

// Vector i of four of the rows, of so many parts. All an invocation needs is loaded at once, so that it waits for memory
// once.
fn joined(i: u32, count: u32) -> vec4<f32> {
    let head = (i / 16u) * 32u;
    let without_parts = vec2<f32>(sinks[i / 16u % 9u], 1.0);
    var highest = without_parts.x;
    var total = without_parts.y;
    var sum = vec4<f32>(0.0);
    for (var first = 0u; first < count; first += 4u) {
        var share = array<vec2<f32>, 4u>();
        var value = array<vec4<f32>, 4u>();
        for (var j = 0u; j < 4u; j++) {
            // Beyond the last part it counts again, with no weight.
            let s = head + min(first + j, count - 1u);
            share[j] = parts[4u * 9u * 32u * 16u + s].xy;
            value[j] = parts[s * 16u + i % 16u];
        }
        let before = highest;
        for (var j = 0u; j < 4u; j++) {
            highest = max(highest, share[j].x);
        }
        let shrink = exp(before - highest);
        total *= shrink;
        sum *= shrink;
        for (var j = 0u; j < 4u; j++) {
            let weight = select(0.0, exp(share[j].x - highest), first + j < count);
            total += weight * share[j].y;
            sum += weight * value[j];
        }
    }
    // Only without keys it is 0: NaN stays what it is.
    return select(sum / total, vec4<f32>(0.0), total == 0.0);
}
// Where rows lie that were made ready for products: vector i of four of each group after that of the groups before, so that
// neighbouring groups are neighbours; behind all rows what each one's products are multiplied by.
fn ready_at(row: u32, i: u32) -> u32 {
    return 19584u + (row * 8u + i % 8u) * p.w_groups + i / 8u;
}

fn scale_at(row: u32) -> u32 {
    return 19584u + 4u * 8u * p.w_groups + row;
}

@compute @workgroup_size(64u)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let i = (wid.y * groups.x + wid.x) * 64u + lane;
    let row = i / (8u * p.w_groups);
    let at = i % (8u * p.w_groups);
    if (row >= 4u) {
        return;
    }
    // Zeros beyond the row's end.
    let value = joined(row * 9u * 16u + min(at, 9u * 16u - 1u), split_count(visible(row)));
    parts[ready_at(row, at)] = select(vec4<f32>(0.0), value, at < 9u * 16u);
    if (at == 0u) {
        parts[scale_at(row)] = vec4<f32>(1.0);
    }
}
