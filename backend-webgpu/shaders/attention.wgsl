// Attention with online softmax, a workgroup for each query row and head. WG keys at a time: each invocation scores one
// key; then (part, channel) pairs of invocations sum the weighted values of a part of the keys. A channel is a VALUE: four
// numbers where heads allow it, so that more parts are summed at a time.
//!include lib/keys.wgsl
//!include lib/reduce.wgsl
//!include lib/slopes.wgsl

const LOWEST: f32 = -3.4028234e38;
const PARTS: u32 = WG / CHANNELS;
//!if VEC4
var<workgroup> query: array<vec4<f32>, D / 4u>;
//!else
var<workgroup> query: array<f32, D>;
//!end
var<workgroup> weight: array<f32, WG>;
var<workgroup> partial: array<VALUE, WG>;

@compute @workgroup_size(WG)
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
//!if VEC4
    for (var c = lane; c < D / 4u; c += WG) {
        query[c] = q[job * (D / 4u) + c];
    }
//!else
    for (var c = lane; c < D; c += WG) {
        query[c] = q[job * D + c];
    }
//!end
    workgroupBarrier();
    let range = visible(row);
//!if SLOPES
    let slope = slope_of(head);
    let place = f32(place_of(row));
//!end
    let before = before_sequence(row, p.n);
    let channel = lane % CHANNELS;
    let part = lane / CHANNELS;
    var sums: array<VALUE, PER>;
//!if SINKS
    let before_keys = vec2<f32>(sinks[head], 1.0);
//!else
    let before_keys = vec2<f32>(LOWEST, 0.0);
//!end
    var highest = before_keys.x;
    var total = before_keys.y;
    for (var first = range.x; first < range.y; first += WG) {
        let key = first + lane;
        var score = LOWEST;
        if (key < range.y) {
            var product = 0.0;
//!if VEC4
            let at = ((before + key) * p.n_head_kv + kv_head) * (D / 4u);
            for (var c = 0u; c < D / 4u; c++) {
                product += dot(query[c], key_at(at + c));
            }
//!else
            let at = ((before + key) * p.n_head_kv + kv_head) * D;
            for (var c = 0u; c < D; c++) {
                product += query[c] * key_at(at + c);
            }
//!end
            score = capped(p.scale * product);
//!if SLOPES
            score -= slope * abs(f32(key) - place);
//!end
//!if EXPLICIT
            score = max(score + mask[(head * p.mask_rows + row) * p.n + key], HIDDEN);
//!end
        }
        let lowered = highest;
        highest = max(highest, workgroup_max(lane, score));
        let shrink = exp(lowered - highest);
//!if EXPLICIT
        let own = select(0.0, exp(score - highest), key < range.y && score != HIDDEN);
//!else
        let own = select(0.0, exp(score - highest), key < range.y);
//!end
        weight[lane] = own;
        total = total * shrink + workgroup_sum(lane, own);
        let count = min(WG, range.y - first);
        for (var c = 0u; c < PER; c++) {
            let at = channel + c * CHANNELS;
            var sum = sums[c] * shrink;
            if (at < VALUES) {
                for (var i = part; i < count; i += PARTS) {
                    sum += weight[i] * value_at(((before + first + i) * p.n_head_kv + kv_head) * VALUES + at);
                }
            }
            sums[c] = sum;
        }
        workgroupBarrier();
    }
    let scale = select(1.0 / total, 0.0, total == 0.0);
    for (var c = 0u; c < PER; c++) {
        // Parts of the keys are added up through the workgroup's memory.
        partial[lane] = sums[c];
        workgroupBarrier();
        for (var s = PARTS / 2u; s > 0u; s >>= 1u) {
            if (part < s) {
                partial[lane] += partial[lane + s * CHANNELS];
            }
            workgroupBarrier();
        }
        let at = channel + c * CHANNELS;
        if (part == 0u && at < VALUES) {
            out[job * VALUES + at] = partial[lane] * scale;
        }
        workgroupBarrier();
    }
}
