// A selective scan, with BIAS of its paces and with a GATE: LANES invocations share a channel, each with PER numbers of
// its state at hand, and walk down the rows. The state is read before it is written, by the same invocation.
//!function unary_softplus
//!if GATE
//!function ACT
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
    // Invocations without a channel meet the others, and write nothing.
    let mine = min(channel, p.channels - 1u);
    let head = mine / p.head_dim;
    let mix = head / p.group_heads * p.n;
    let begin = walk_begin(wid.z);
    let end = walk_end(wid.z, p.rows);
    let first = (before_sequence(begin, p.channels) + mine) * p.n;
    var own: array<f32, PER>;
    for (var i = 0u; i < PER; i++) {
        let at = part + i * LANES;
        own[i] = select(0.0, state[first + min(at, p.n - 1u)], at < p.n && channel < p.channels);
    }
    let real = min(step.rows, end);
    for (var row = begin; row < real; row++) {
        let value = X[row * p.x_cols + p.x_start + mine];
        var pace = DT[row * p.dt_cols + p.dt_start + head];
//!if BIAS
        pace += bias[head];
//!end
        pace = unary_softplus(pace);
        let b_at = row * p.b_cols + p.b_start + mix;
        let c_at = row * p.c_cols + p.c_start + mix;
        var sum = 0.0;
        for (var i = 0u; i < PER; i++) {
            let at = min(part + i * LANES, p.n - 1u);
            let decay = exp(pace * a[head * p.decays + at % p.decays]);
            own[i] = own[i] * decay + pace * value * B[b_at + at];
            sum += select(0.0, own[i] * C[c_at + at], part + i * LANES < p.n);
        }
        let begun = lanes_begin(lane, sum);
        lanes_meet();
        if (part == 0u && channel < p.channels) {
            var y = lanes_end(lane, begun) + skip[head] * value;
//!if GATE
            y *= ACT(Z[row * p.z_cols + p.z_start + mine]);
//!end
            out[row * p.channels + mine] = y;
        }
        // What was left for the first is read before the next row's is.
        lanes_meet();
    }
    if (channel >= p.channels) {
        return;
    }
    for (var i = part; i < p.n && begin < real; i += LANES) {
        state[first + i] = own[i / LANES];
    }
    for (var row = max(real, begin) + part; row < end; row += LANES) {
        out[row * p.channels + mine] = 0.0;
    }
}
