// Attention of one query or a few. The keys of each query and head are cut into parts, which SHARERS workgroups share out:
// weighted sums with the highest score and the sum of weights, which whoever reads them joins. SPLIT_KEYS keys at a time:
// SHARE invocations score one; then (part of the keys, channel) pairs of invocations sum the weighted values.
//!include lib/keys.wgsl
//!include lib/reduce.wgsl
//!include lib/splits.wgsl
//!include lib/slopes.wgsl

const RUNS: u32 = WG / CHANNELS;
const ROUNDS: u32 = SPLIT_KEYS / RUNS;
var<workgroup> scores: array<f32, WG>;
var<workgroup> weight: array<f32, SPLIT_KEYS>;
var<workgroup> partial: array<vec4<f32>, WG>;

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let job = wid.y * groups.x + wid.x;
    let query = job / (HEADS * SHARERS);
    if (query >= QUERIES) {
        return;
    }
    let all = visible(query);
    for (var split = job % SHARERS; split < split_count(all); split += SHARERS) {
        score_part(lane, query, job / SHARERS % HEADS, split, all);
    }
}

// One part of the keys that a query sees.
fn score_part(lane: u32, query: u32, head: u32, split: u32, all: vec2<u32>) {
    let job = (query * HEADS + head) * SPLITS + split;
    let start = all.x + split * split_keys(all);
    let end = min(start + split_keys(all), all.y);
    let kv_head = head * p.n_head_kv / HEADS;
    let before = before_sequence(query, p.n);
    let channel = lane % CHANNELS;
    let run = lane / CHANNELS;
    var sums: array<vec4<f32>, PER>;
    var highest = LOWEST;
    var total = 0.0;
//!if SLOPES
    let slope = slope_of(head);
    let place = f32(place_of(query));
//!end
    let own_key = lane / SHARE;
    let share = lane % SHARE;
    for (var first = start; first < end; first += SPLIT_KEYS) {
        let key = first + own_key;
        var product = vec4<f32>(0.0);
        if (key < end) {
            let at = ((before + key) * p.n_head_kv + kv_head) * D4;
            for (var c = share; c < D4; c += SHARE) {
                product += q[(query * HEADS + head) * D4 + c] * key_at(at + c);
            }
        }
        var score = dot(product, vec4<f32>(1.0));
        if (SHARE > 1u) {
            scores[lane] = score;
            workgroupBarrier();
            score = 0.0;
            for (var i = 0u; i < SHARE; i++) {
                score += scores[own_key * SHARE + i];
            }
        }
        score = capped(p.scale * score);
//!if SLOPES
        score -= slope * abs(place - f32(key));
//!end
        score = select(LOWEST, score, key < end);
//!if EARLY
        // Values do not wait for the weights.
        var early = array<vec4<f32>, ROUNDS>();
        for (var i = 0u; i < ROUNDS; i++) {
            early[i] = value_at(((before + min(first + run + i * RUNS, end - 1u)) * p.n_head_kv + kv_head) * VALUES + min(channel, VALUES - 1u));
        }
//!end
        let lowered = highest;
        highest = max(highest, workgroup_max(lane, score));
        let shrink = exp(lowered - highest);
        let own = select(0.0, exp(score - highest), key < end && share == 0u);
        if (share == 0u) {
            weight[own_key] = own;
        }
        total = total * shrink + workgroup_sum(lane, own);
//!if EARLY
        var sum = sums[0] * shrink;
        for (var i = 0u; i < ROUNDS; i++) {
            // Keys beyond the end have no weight.
            sum += weight[run + i * RUNS] * early[i];
        }
        sums[0] = sum;
//!else
        let count = min(SPLIT_KEYS, end - first);
        for (var c = 0u; c < PER; c++) {
            let at = channel + c * CHANNELS;
            var sum = sums[c] * shrink;
            if (at < VALUES) {
                for (var i = run; i < count; i += RUNS) {
                    sum += weight[i] * value_at(((before + first + i) * p.n_head_kv + kv_head) * VALUES + at);
                }
            }
            sums[c] = sum;
        }
//!end
        workgroupBarrier();
    }
    for (var c = 0u; c < PER; c++) {
        partial[lane] = sums[c];
        workgroupBarrier();
        let at = channel + c * CHANNELS;
        if (run == 0u && at < VALUES) {
            var sum = partial[channel];
            for (var r = 1u; r < RUNS; r++) {
                sum += partial[channel + r * CHANNELS];
            }
            parts[job * VALUES + at] = sum;
        }
        workgroupBarrier();
    }
    if (lane == 0u) {
        parts[QUERIES * HEADS * SPLITS * VALUES + job] = vec4<f32>(highest, total, 0.0, 0.0);
    }
}
