// top_k subgroups join
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
    cols: u32,
    k: u32,
    lists: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> parts: array<u32>;
@group(0) @binding(3) var<storage, read_write> values: array<f32>;
@group(0) @binding(4) var<storage, read_write> ids: array<i32>;

fn is_finite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}
const NONE: u32 = 0xffffffffu;
const BROKEN: u32 = 0xfffffffeu;

fn beats(a: f32, ai: u32, b: f32, bi: u32) -> bool {
    if (ai == NONE || bi == BROKEN) {
        return false;
    }
    return bi == NONE || ai == BROKEN || a > b || (a == b && ai < bi);
}

const BESTS: u32 = 256u / 8u;
var<workgroup> best_value: array<f32, BESTS>;
var<workgroup> best_index: array<u32, BESTS>;

fn workgroup_best(lane: u32, value: f32, index: u32) {
    var best = value;
    var at = index;
    for (var distance = 1u; distance < 8u; distance <<= 1u) {
        let other = subgroupShuffleXor(best, distance);
        let other_at = subgroupShuffleXor(at, distance);
        if (beats(other, other_at, best, at)) {
            best = other;
            at = other_at;
        }
    }
    if (lane % 8u == 0u) {
        best_value[lane / 8u] = best;
        best_index[lane / 8u] = at;
    }
    workgroupBarrier();
    if (lane == 0u) {
        for (var s = 1u; s < BESTS; s++) {
            if (beats(best_value[s], best_index[s], best_value[0], best_index[0])) {
                best_value[0] = best_value[s];
                best_index[0] = best_index[s];
            }
        }
    }
    workgroupBarrier();
}

fn candidate(row: u32, lane: u32, at: u32) -> vec2<u32> {
    if (lane >= p.lists || at >= p.k) {
        return vec2<u32>(0u, NONE);
    }
    let entry = 2u * ((row * p.lists + lane) * p.k + at);
    return vec2<u32>(parts[entry], parts[entry + 1u]);
}

@compute @workgroup_size(256u)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let group = wid.y * groups.x + wid.x;
    if (group >= p.rows) {
        return;
    }
    var at = 0u;
    let best = candidate(group, lane, at);
    var value = bitcast<f32>(best.x);
    var index = best.y;
    for (var round = 0u; round < p.k; round++) {
        workgroup_best(lane, value, index);
        let taken = best_index[0];
        if (lane == 0u) {
            let slot = group * p.k + round;
            values[slot] = select(best_value[0], 0.0, taken == BROKEN);
            ids[slot] = select(i32(min(taken, p.cols - 1u)), -1, taken == BROKEN);
        }
        workgroupBarrier();
        if (taken == index && taken != NONE) {
            at++;
            let next = candidate(group, lane, at);
            value = bitcast<f32>(next.x);
            index = next.y;
        }
    }
}
