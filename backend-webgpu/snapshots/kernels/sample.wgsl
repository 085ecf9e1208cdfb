// sample
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
    // Where the workgroups of this dispatch begin, if it is a part of a kernel; else 0.
    origin: vec3<u32>,
}
struct Params {
    k: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> values: array<f32>;
@group(0) @binding(3) var<storage, read> ids: array<i32>;
@group(0) @binding(4) var<storage, read_write> out: array<i32>;

// Draws one of the candidates, which come in descending order; -1 if one is not finite. There are few, so one invocation
// does it.
// Whether a number is neither NaN nor infinite; by its bits, since compilers may take for granted that it is.
fn is_finite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}
fn pcg(x: u32) -> u32 {
    let state = x * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return (word >> 22u) ^ word;
}

fn uniform_draw() -> f32 {
    let h = pcg((step.position + step.rows - 1u) ^ pcg(step.seed_lo ^ pcg(step.seed_hi)));
    return f32(h >> 8u) / 16777216.0;
}

fn weight(i: u32) -> f32 {
    return exp((values[i] - values[0]) / step.temperature);
}

fn choose() -> u32 {
    if (!(step.temperature > 0.0)) {
        return 0u;
    }
    let n = select(p.k, min(step.top_k, p.k), step.top_k > 0u);
    var total = 0.0;
    for (var i = 0u; i < n; i++) {
        total += weight(i);
    }
    var kept = n;
    var stayed = 0.0;
    for (var i = 0u; i < n; i++) {
        stayed += weight(i);
        if (stayed >= step.top_p * total) {
            kept = i + 1u;
            break;
        }
    }
    let draw = uniform_draw() * stayed;
    var running = 0.0;
    for (var i = 0u; i < kept; i++) {
        running += weight(i);
        if (running > draw) {
            return i;
        }
    }
    return kept - 1u;
}

@compute @workgroup_size(1)
fn main() {
    for (var i = 0u; i < p.k; i++) {
        if (!is_finite(values[i])) {
            out[0] = -1;
            return;
        }
    }
    out[0] = ids[choose()];
}
