// Logits as a request wants them: less, or more, of the tokens that came before, and a bias. An invocation a logit. A
// single row is the step's last.

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
    let end = min(step.position + at + 1u, p.n_ctx);
    let recent_from = end - min(end, u32(penalties[2]));
    let counted_from = max(end - min(end, u32(penalties[5])), u32(penalties[6]));
    var recent = false;
    var count = 0u;
    for (var t = min(recent_from, counted_from); t < end; t++) {
        if (history[t] == i32(id)) {
            recent = recent || t >= recent_from;
            count += select(0u, 1u, t >= counted_from);
        }
    }
    var logit = logits[i];
    if (recent) {
        logit *= select(penalties[0], penalties[1], logit > 0.0);
    }
    if (count > 0u) {
        logit -= penalties[3] + f32(count) * penalties[4];
    }
    out[i] = logit + bias[id];
}
