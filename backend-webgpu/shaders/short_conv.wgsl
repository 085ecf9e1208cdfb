// A causal convolution of each channel, with BIAS, and with gates before (GATE) and after it (GATE_OUT): an invocation
// walks down a channel with the last values of it at hand. The state is read before it is written, by the same
// invocation.
//!function ACT
//!include lib/walk.wgsl

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let c = (wid.y * groups.x + wid.x) * WG + lane;
    if (c >= p.cols) {
        return;
    }
    let real = min(step.rows, p.rows);
    let begin = walk_begin(wid.z);
    let end = walk_end(wid.z, p.rows);
    let last = min(real, end);
    let before = before_sequence(begin, TAPS - 1u) * p.cols;
    var taps: array<f32, TAPS>;
    var seen: array<f32, TAPS>;
    for (var j = 0u; j < TAPS; j++) {
        taps[j] = kernel[c * TAPS + j];
    }
    for (var j = 1u; j < TAPS; j++) {
        seen[j] = state[before + (j - 1u) * p.cols + c];
    }
    for (var row = begin; row < end; row++) {
        var sum = 0.0;
        for (var j = 1u; j < TAPS; j++) {
            seen[j - 1u] = seen[j];
            sum += taps[j - 1u] * seen[j];
        }
        var value = X[row * p.x_cols + p.x_start + c];
//!if GATE
        value *= BEFORE[row * p.gate_cols + p.gate_start + c];
//!end
        seen[TAPS - 1u] = value;
        sum += taps[TAPS - 1u] * value;
//!if BIAS
        sum += bias[c];
//!end
        sum = ACT(sum);
//!if GATE_OUT
        sum *= AFTER[row * p.gate_out_cols + p.gate_out_start + c];
//!end
        out[row * p.cols + c] = sum;
        // The rows from here on are not real.
        if (row + 1u == last) {
            for (var j = 1u; j < TAPS; j++) {
                state[before + (j - 1u) * p.cols + c] = seen[j];
            }
        }
    }
}
