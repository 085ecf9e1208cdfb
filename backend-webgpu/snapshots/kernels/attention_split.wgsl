// attention_split q4_0 subgroups early key_blocks value_blocks vec4 values4
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
    n_head_kv: u32,
    m: u32,
    n: u32,
    causal: u32,
    window: u32,
    cached: u32,
    scale: f32,
    softcap: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> k: array<u32>;
@group(0) @binding(4) var<storage, read> v: array<u32>;
@group(0) @binding(5) var<storage, read_write> parts: array<vec4<f32>>;

fn k_quad(row: u32, i: u32) -> vec4<f32> {
    let block = i / 8u;
    let scale = bitcast<f32>(k[row * 32u + 24u + block]);
    let first = row * 32u + 4 * block;
    let word = k[first + (i / 2u) % 4u] >> (16u * (i % 2u));
    var levels = (vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    return scale * (vec4<f32>(levels) - f32(8));
}

fn key_at(i: u32) -> vec4<f32> {
    return k_quad(i / 48u, i % 48u);
}

fn v_quad(row: u32, i: u32) -> vec4<f32> {
    let block = i / 8u;
    let scale = bitcast<f32>(v[row * 32u + 24u + block]);
    let first = row * 32u + 4 * block;
    let word = v[first + (i / 2u) % 4u] >> (16u * (i % 2u));
    var levels = (vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    return scale * (vec4<f32>(levels) - f32(8));
}

fn value_at(i: u32) -> vec4<f32> {
    return v_quad(i / 48u, i % 48u);
}
const SPAN: u32 = 8u;
var<workgroup> reduce_few: array<f32, 2u * 256u / SPAN>;
var<private> reduce_half: u32;

fn reduce_leave(lane: u32, value: f32) -> u32 {
    reduce_half = 256u / SPAN - reduce_half;
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
    for (var i = 1u; i < 256u / SPAN; i++) {
        total += reduce_few[first + i];
    }
    return total;
}

fn workgroup_max(lane: u32, value: f32) -> f32 {
    let first = reduce_maxima(lane, value);
    workgroupBarrier();
    var highest = reduce_few[first];
    for (var i = 1u; i < 256u / SPAN; i++) {
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

fn split_keys(range: vec2<u32>) -> u32 {
    return max(64u, (range.y - range.x + 32u - 1u) / 32u);
}

fn split_count(range: vec2<u32>) -> u32 {
    let keys = split_keys(range);
    return max((range.y - range.x + keys - 1u) / keys, 1u);
}

const RUNS: u32 = 256u / 16u;
const ROUNDS: u32 = 64u / RUNS;
var<workgroup> scores: array<f32, 256u>;
var<workgroup> weight: array<f32, 64u>;
var<workgroup> partial: array<vec4<f32>, 256u>;

@compute @workgroup_size(256u)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let job = wid.y * groups.x + wid.x;
    let query = job / (9u * 32u);
    if (query >= 1u) {
        return;
    }
    let all = visible(query);
    for (var split = job % 32u; split < split_count(all); split += 32u) {
        score_part(lane, query, job / 32u % 9u, split, all);
    }
}

fn score_part(lane: u32, query: u32, head: u32, split: u32, all: vec2<u32>) {
    let job = (query * 9u + head) * 32u + split;
    let start = all.x + split * split_keys(all);
    let end = min(start + split_keys(all), all.y);
    let kv_head = head * p.n_head_kv / 9u;
    let before = before_sequence(query, p.n);
    let channel = lane % 16u;
    let run = lane / 16u;
    var sums: array<vec4<f32>, 1u>;
    var highest = LOWEST;
    var total = 0.0;
    let own_key = lane / 4u;
    let share = lane % 4u;
    for (var first = start; first < end; first += 64u) {
        let key = first + own_key;
        var product = vec4<f32>(0.0);
        if (key < end) {
            let at = ((before + key) * p.n_head_kv + kv_head) * 16u;
            for (var c = share; c < 16u; c += 4u) {
                product += q[(query * 9u + head) * 16u + c] * key_at(at + c);
            }
        }
        var score = dot(product, vec4<f32>(1.0));
        if (4u > 1u) {
            scores[lane] = score;
            workgroupBarrier();
            score = 0.0;
            for (var i = 0u; i < 4u; i++) {
                score += scores[own_key * 4u + i];
            }
        }
        score = select(LOWEST, capped(p.scale * score), key < end);
        var early = array<vec4<f32>, ROUNDS>();
        for (var i = 0u; i < ROUNDS; i++) {
            early[i] = value_at(((before + min(first + run + i * RUNS, end - 1u)) * p.n_head_kv + kv_head) * 16u + min(channel, 16u - 1u));
        }
        let lowered = highest;
        highest = max(highest, workgroup_max(lane, score));
        let shrink = exp(lowered - highest);
        let own = select(0.0, exp(score - highest), key < end && share == 0u);
        if (share == 0u) {
            weight[own_key] = own;
        }
        total = total * shrink + workgroup_sum(lane, own);
        var sum = sums[0] * shrink;
        for (var i = 0u; i < ROUNDS; i++) {
            sum += weight[run + i * RUNS] * early[i];
        }
        sums[0] = sum;
        workgroupBarrier();
    }
    for (var c = 0u; c < 1u; c++) {
        partial[lane] = sums[c];
        workgroupBarrier();
        let at = channel + c * 16u;
        if (run == 0u && at < 16u) {
            var sum = partial[channel];
            for (var r = 1u; r < RUNS; r++) {
                sum += partial[channel + r * 16u];
            }
            parts[job * 16u + at] = sum;
        }
        workgroupBarrier();
    }
    if (lane == 0u) {
        parts[1u * 9u * 32u * 16u + job] = vec4<f32>(highest, total, 0.0, 0.0);
    }
}
