// penalize
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
    len: u32,
    rows: u32,
    cols: u32,
    n_ctx: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> logits: array<f32>;
@group(0) @binding(3) var<storage, read> history: array<i32>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read> penalties: array<f32>;
@group(0) @binding(6) var<storage, read_write> out: array<f32>;

fn position_of(row: u32) -> u32 {
    return step.position + row;
}

fn before_sequence(row: u32, capacity: u32) -> u32 {
    return 0u;
}

@compute @workgroup_size(64u)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let i = (wid.y * groups.x + wid.x) * 64u + lane;
    if (i >= p.len) {
        return;
    }
    let row = i / p.cols;
    let id = i % p.cols;
    let at = select(row, step.rows - 1u, p.rows < 2u);
    let end = min(position_of(at) + 1u, p.n_ctx);
    let before = before_sequence(at, p.n_ctx);
    let own = before_sequence(at, 8u);
    let recent_from = end - min(end, u32(penalties[own + 2u]));
    let counted_from = max(end - min(end, u32(penalties[own + 5u])), u32(penalties[own + 6u]));
    var recent = false;
    var count = 0u;
    for (var t = min(recent_from, counted_from); t < end; t++) {
        if (history[before + t] == i32(id)) {
            recent = recent || t >= recent_from;
            count += select(0u, 1u, t >= counted_from);
        }
    }
    var logit = logits[i];
    if (recent) {
        logit *= select(penalties[own], penalties[own + 1u], logit > 0.0);
    }
    if (count > 0u) {
        logit -= penalties[own + 3u] + f32(count) * penalties[own + 4u];
    }
    out[i] = logit + bias[before_sequence(at, p.cols) + id];
}
