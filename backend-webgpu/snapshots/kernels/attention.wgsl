// attention subgroups vec4 values4 key_halves value_halves sinks
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
    n_head: u32,
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
@group(0) @binding(3) var<storage, read> k: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read> v: array<vec2<u32>>;
@group(0) @binding(5) var<storage, read> sinks: array<f32>;
@group(0) @binding(6) var<storage, read_write> out: array<vec4<f32>>;

fn halves4(words: vec2<u32>) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}

fn key_at(i: u32) -> vec4<f32> {
    return halves4(k[i]);
}

fn value_at(i: u32) -> vec4<f32> {
    return halves4(v[i]);
}
const SPAN: u32 = 8u;
var<workgroup> reduce_few: array<f32, 2u * 128u / SPAN>;
var<private> reduce_half: u32;

fn reduce_leave(lane: u32, value: f32) -> u32 {
    reduce_half = 128u / SPAN - reduce_half;
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
    for (var i = 1u; i < 128u / SPAN; i++) {
        total += reduce_few[first + i];
    }
    return total;
}

fn workgroup_max(lane: u32, value: f32) -> f32 {
    let first = reduce_maxima(lane, value);
    workgroupBarrier();
    var highest = reduce_few[first];
    for (var i = 1u; i < 128u / SPAN; i++) {
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
const PARTS: u32 = 128u / 4u;
var<workgroup> query: array<vec4<f32>, 16u / 4u>;
var<workgroup> weight: array<f32, 128u>;
var<workgroup> partial: array<vec4<f32>, 128u>;

@compute @workgroup_size(128u)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let job = wid.y * groups.x + wid.x;
    if (job >= p.m * p.n_head) {
        return;
    }
    let row = job / p.n_head;
    let head = job % p.n_head;
    let kv_head = head * p.n_head_kv / p.n_head;
    for (var c = lane; c < 16u / 4u; c += 128u) {
        query[c] = q[job * (16u / 4u) + c];
    }
    workgroupBarrier();
    let range = visible(row);
    let before = before_sequence(row, p.n);
    let channel = lane % 4u;
    let part = lane / 4u;
    var sums: array<vec4<f32>, 1u>;
    let before_keys = vec2<f32>(sinks[head], 1.0);
    var highest = before_keys.x;
    var total = before_keys.y;
    for (var first = range.x; first < range.y; first += 128u) {
        let key = first + lane;
        var score = LOWEST;
        if (key < range.y) {
            var product = 0.0;
            let at = ((before + key) * p.n_head_kv + kv_head) * (16u / 4u);
            for (var c = 0u; c < 16u / 4u; c++) {
                product += dot(query[c], key_at(at + c));
            }
            score = capped(p.scale * product);
        }
        let lowered = highest;
        highest = max(highest, workgroup_max(lane, score));
        let shrink = exp(lowered - highest);
        let own = select(0.0, exp(score - highest), key < range.y);
        weight[lane] = own;
        total = total * shrink + workgroup_sum(lane, own);
        let count = min(128u, range.y - first);
        for (var c = 0u; c < 1u; c++) {
            let at = channel + c * 4u;
            var sum = sums[c] * shrink;
            if (at < 4u) {
                for (var i = part; i < count; i += PARTS) {
                    sum += weight[i] * value_at(((before + first + i) * p.n_head_kv + kv_head) * 4u + at);
                }
            }
            sums[c] = sum;
        }
        workgroupBarrier();
    }
    let scale = select(1.0 / total, 0.0, total == 0.0);
    for (var c = 0u; c < 1u; c++) {
        partial[lane] = sums[c];
        workgroupBarrier();
        for (var s = PARTS / 2u; s > 0u; s >>= 1u) {
            if (part < s) {
                partial[lane] += partial[lane + s * 4u];
            }
            workgroupBarrier();
        }
        let at = channel + c * 4u;
        if (part == 0u && at < 4u) {
            out[job * 4u + at] = partial[lane] * scale;
        }
        workgroupBarrier();
    }
}
