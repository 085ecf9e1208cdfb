// Attention of one query, a workgroup for each head and part of the keys: weighted sums with the highest score and the
// sum of weights, which whoever reads them joins. SPLIT_WG keys at a time: each invocation scores one; then (part of the
// keys, channel) pairs of invocations sum the weighted values.
//!include lib/keys.wgsl
//!include lib/reduce.wgsl
//!include lib/splits.wgsl

const RUNS: u32 = SPLIT_WG / CHANNELS;
const ROUNDS: u32 = SPLIT_WG / RUNS;
var<workgroup> weight: array<f32, SPLIT_WG>;
var<workgroup> partial: array<vec4<f32>, SPLIT_WG>;

@compute @workgroup_size(SPLIT_WG)
fn main(
    @builtin(workgroup_id) wid: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let job = wid.y * groups.x + wid.x;
    let head = job / SPLITS;
    let split = job % SPLITS;
    let all = visible(0u);
    if (head >= HEADS || split >= split_count(all)) {
        return;
    }
    let start = all.x + split * split_keys(all);
    let end = min(start + split_keys(all), all.y);
    let kv_head = head * p.n_head_kv / HEADS;
    let channel = lane % CHANNELS;
    let run = lane / CHANNELS;
    var sums: array<vec4<f32>, PER>;
    var highest = LOWEST;
    var total = 0.0;
    for (var first = start; first < end; first += SPLIT_WG) {
        let key = first + lane;
        var score = LOWEST;
        if (key < end) {
            var product = vec4<f32>(0.0);
            let at = (key * p.n_head_kv + kv_head) * D4;
            for (var c = 0u; c < D4; c++) {
                product += q[head * D4 + c] * key_at(at + c);
            }
            score = capped(p.scale * dot(product, vec4<f32>(1.0)));
        }
//!if EARLY
        // Values do not wait for the weights.
        var early: array<vec4<f32>, ROUNDS>;
        for (var i = 0u; i < ROUNDS; i++) {
            early[i] = value_at((min(first + run + i * RUNS, end - 1u) * p.n_head_kv + kv_head) * VALUES + channel);
        }
//!end
        let before = highest;
        highest = max(highest, workgroup_max(lane, score));
        let shrink = exp(before - highest);
        let own = select(0.0, exp(score - highest), key < end);
        weight[lane] = own;
        total = total * shrink + workgroup_sum(lane, own);
//!if EARLY
        var sum = sums[0] * shrink;
        for (var i = 0u; i < ROUNDS; i++) {
            // Keys beyond the end have no weight.
            sum += weight[run + i * RUNS] * early[i];
        }
        sums[0] = sum;
//!else
        let count = min(SPLIT_WG, end - first);
        for (var c = 0u; c < PER; c++) {
            let at = channel + c * CHANNELS;
            var sum = sums[c] * shrink;
            if (at < VALUES) {
                for (var i = run; i < count; i += RUNS) {
                    sum += weight[i] * value_at(((first + i) * p.n_head_kv + kv_head) * VALUES + at);
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
        parts[HEADS * SPLITS * VALUES + job] = vec4<f32>(highest, total, 0.0, 0.0);
    }
}
