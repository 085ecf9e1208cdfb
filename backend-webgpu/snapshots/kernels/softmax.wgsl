// softmax subgroups explicit sinks
struct Step {
    position: u32,
    rows: u32,
    top_k: u32,
    top_p: f32,
    temperature: f32,
    seed_lo: u32,
    seed_hi: u32,
    sequence: u32,
    origin: vec3<u32>,
}
struct Params {
    rows: u32,
    m: u32,
    n: u32,
    causal: u32,
    window: u32,
    cached: u32,
    scale: f32,
    softcap: f32,
    heads: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> mask: array<f32>;
@group(0) @binding(4) var<storage, read> sinks: array<f32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;

const SPAN: u32 = 8u;
var<workgroup> reduce_few: array<f32, 2u * 64u / SPAN>;
var<private> reduce_half: u32;

fn reduce_leave(lane: u32, value: f32) -> u32 {
    reduce_half = 64u / SPAN - reduce_half;
    if (lane % SPAN == 0u) {
        reduce_few[reduce_half + lane / SPAN] = value;
    }
    return reduce_half;
}

fn reduce_sums(lane: u32, value: f32) -> u32 {
    var sum = value;
    for (var distance = 1u; distance < SPAN; distance <<= 1u) {
        sum += subgroupShuffleXor(sum, distance);
    }
    return reduce_leave(lane, sum);
}

fn reduce_maxima(lane: u32, value: f32) -> u32 {
    var most = value;
    for (var distance = 1u; distance < SPAN; distance <<= 1u) {
        most = max(most, subgroupShuffleXor(most, distance));
    }
    return reduce_leave(lane, most);
}

fn workgroup_sum(lane: u32, value: f32) -> f32 {
    let first = reduce_sums(lane, value);
    workgroupBarrier();
    var total = reduce_few[first];
    for (var i = 1u; i < 64u / SPAN; i++) {
        total += reduce_few[first + i];
    }
    return total;
}

fn workgroup_max(lane: u32, value: f32) -> f32 {
    let first = reduce_maxima(lane, value);
    workgroupBarrier();
    var highest = reduce_few[first];
    for (var i = 1u; i < 64u / SPAN; i++) {
        highest = max(highest, reduce_few[first + i]);
    }
    return highest;
}
fn position_of(row: u32) -> u32 {
    return step.position + row;
}

fn before_sequence(row: u32, capacity: u32) -> u32 {
    return 0u;
}
fn safe_tanh(x: f32) -> f32 {
    let nan = (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
    return select(tanh(clamp(x, -15.0, 15.0)), x, nan);
}

const HIDDEN: f32 = -3.0e38;

fn capped(score: f32) -> f32 {
    if (p.softcap > 0.0) {
        return p.softcap * safe_tanh(score / p.softcap);
    }
    return score;
}

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

fn score(first: u32, i: u32, c: u32) -> f32 {
    let s = capped(p.scale * x[first + c]);
    return max(s + mask[i * p.n + c], HIDDEN);
}

fn weight(score: f32, highest: f32) -> f32 {
    return select(exp(score - highest), 0.0, score == HIDDEN);
}

@compute @workgroup_size(64u)
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
    let sink = sinks[row / p.m % p.heads];
    var highest = sink;
    for (var c = range.x + lane; c < range.y; c += 64u) {
        highest = max(highest, score(first, i, c));
    }
    highest = workgroup_max(lane, highest);
    var sum = 0.0;
    for (var c = range.x + lane; c < range.y; c += 64u) {
        sum += weight(score(first, i, c), highest);
    }
    sum = workgroup_sum(lane, sum);
    sum += exp(sink - highest);
    let scale = select(1.0 / sum, 0.0, sum == 0.0);
    for (var c = lane; c < p.n; c += 64u) {
        var value = 0.0;
        if (c >= range.x && c < range.y) {
            value = weight(score(first, i, c), highest) * scale;
        }
        out[first + c] = value;
    }
}
