// A gated delta net, with GATES made of g and beta: LANES invocations share a row of a head's matrix, each with PER of
// its columns at hand, and walk down the rows of the step. The state is read before it is written, by the same
// invocation.
//!if GATES
//!function unary_sigmoid
//!function unary_softplus
//!end
//!include lib/lanes.wgsl
//!include lib/walk.wgsl

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let channel = (wid.y * groups.x + wid.x) * (WG / LANES) + lane / LANES;
    let part = lane % LANES;
    // Invocations without a row meet the others, and write nothing.
    let mine = min(channel, p.channels - 1u);
    let head = mine / p.dv;
    let head_k = HEAD_K;
    let begin = walk_begin(wid.z);
    let end = walk_end(wid.z, p.rows);
    let first = (before_sequence(begin, p.channels) + mine) * p.dk;
    var own: array<f32, PER>;
    for (var i = 0u; i < PER; i++) {
        let at = part + i * LANES;
        own[i] = select(0.0, state[first + min(at, p.dk - 1u)], at < p.dk && channel < p.channels);
    }
    let real = min(step.rows, end);
    for (var row = begin; row < real; row++) {
        let q_at = row * p.q_cols + p.q_start + head_k * p.dk;
        let k_at = row * p.k_cols + p.k_start + head_k * p.dk;
        let g_at = row * p.g_cols + p.g_start + head * p.gates;
        var share = BETA[row * p.beta_cols + p.beta_start + head];
//!if GATES
        share = unary_sigmoid(share);
        let fade = exp(unary_softplus(G[g_at] + bias[head]) * decays[head]);
//!end
        // What the key recalls, what the query would, and what the query has in common with the key.
        var sum = vec3<f32>(0.0);
        for (var i = 0u; i < PER; i++) {
            let at = min(part + i * LANES, p.dk - 1u);
//!if GATES
            own[i] *= fade;
//!else
            own[i] *= exp(G[g_at + at % p.gates]);
//!end
            let key = K[k_at + at];
            let query = Q[q_at + at];
            let more = vec3<f32>(own[i] * key, own[i] * query, key * query);
            sum += select(vec3<f32>(0.0), more, part + i * LANES < p.dk);
        }
        let begun = lanes_begin(lane, sum);
        lanes_meet();
        if (part == 0u) {
            let all = lanes_end(lane, begun);
            let learned = (V[row * p.v_cols + p.v_start + mine] - all.x) * share;
            if (channel < p.channels) {
                out[row * p.channels + mine] = (all.y + learned * all.z) * p.scale;
            }
            learned_of[lane / LANES] = learned;
        }
        workgroupBarrier();
        let learned = learned_of[lane / LANES];
        for (var i = 0u; i < PER; i++) {
            own[i] += learned * K[k_at + min(part + i * LANES, p.dk - 1u)];
        }
        // What was left for others is read before the next row's is.
        workgroupBarrier();
    }
    if (channel >= p.channels) {
        return;
    }
    for (var i = part; i < p.dk && begin < real; i += LANES) {
        state[first + i] = own[i / LANES];
    }
    for (var row = max(real, begin) + part; row < end; row += LANES) {
        out[row * p.channels + mine] = 0.0;
    }
}

var<workgroup> learned_of: array<f32, WG / LANES>;
