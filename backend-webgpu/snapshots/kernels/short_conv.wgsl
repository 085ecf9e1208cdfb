// short_conv
// The values that differ from step to step.
struct Step {
    position: u32,
    rows: u32,
    top_k: u32,
    top_p: f32,
    temperature: f32,
    seed_lo: u32,
    seed_hi: u32,
    sequence: u32,
}
struct Params {
    rows: u32,
    cols: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> kernel: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
@group(0) @binding(5) var<storage, read_write> state: array<f32>;

// A causal convolution of each channel: an invocation walks down a channel with the last values of it at hand. The state
// is read before it is written, by the same invocation.
@compute @workgroup_size(64u)
fn main(
    @builtin(workgroup_id) wid: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let c = (wid.y * groups.x + wid.x) * 64u + lane;
    if (c >= p.cols) {
        return;
    }
    let real = min(step.rows, p.rows);
    var taps: array<f32, 3u>;
    var seen: array<f32, 3u>;
    for (var j = 0u; j < 3u; j++) {
        taps[j] = kernel[c * 3u + j];
    }
    for (var j = 1u; j < 3u; j++) {
        seen[j] = state[(j - 1u) * p.cols + c];
    }
    for (var row = 0u; row < p.rows; row++) {
        var sum = 0.0;
        for (var j = 1u; j < 3u; j++) {
            seen[j - 1u] = seen[j];
            sum += taps[j - 1u] * seen[j];
        }
        seen[3u - 1u] = x[row * p.cols + c];
        out[row * p.cols + c] = sum + taps[3u - 1u] * seen[3u - 1u];
        // The rows from here on are not real.
        if (row + 1u == real) {
            for (var j = 1u; j < 3u; j++) {
                state[(j - 1u) * p.cols + c] = seen[j];
            }
        }
    }
}
