// attention_join several sinks
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

fn split_keys(range: vec2<u32>) -> u32 {
    return max(64u, (range.y - range.x + 32u - 1u) / 32u);
}

fn split_count(range: vec2<u32>) -> u32 {
    let keys = split_keys(range);
    return max((range.y - range.x + keys - 1u) / keys, 1u);
}

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
    return select(sum / total, vec4<f32>(0.0), total == 0.0);
}
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
    let value = joined(row * 9u * 16u + min(at, 9u * 16u - 1u), split_count(visible(row)));
    parts[ready_at(row, at)] = select(vec4<f32>(0.0), value, at < 9u * 16u);
    if (at == 0u) {
        parts[scale_at(row)] = vec4<f32>(1.0);
    }
}
