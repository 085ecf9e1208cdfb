// Logits as a request wants them: less, or more, of the tokens that came before, and a bias. An invocation a logit. A
// single row is the step's last.
//!include lib/position.wgsl

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let i = (wid.y * groups.x + wid.x) * WG + lane;
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
