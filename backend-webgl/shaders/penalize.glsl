// penalize: less, or more, of the tokens that came before, and a bias. A single row is the step's last.
//!include frame.glsl

vec4 value(int row, int col) {
    // repetition, its inverse, recent tokens, presence; frequency, counted tokens, their beginning.
    vec4 a = load4(src_penalties, 8, 0, 0);
    vec4 b = load4(src_penalties, 8, 0, 1);
    int at = rows < 2 ? int(step_rows) - 1 : row;
    int end = min(int(step_position) + at + 1, n_ctx);
    int recent_from = max(end - int(a.z), 0);
    int counted_from = max(end - int(b.y), int(b.z));
    ivec4 ids = ivec4(col) + ivec4(0, 1, 2, 3);
    vec4 recent = vec4(0.0);
    vec4 count = vec4(0.0);
    for (int t = min(recent_from, counted_from); t < end; t++) {
        vec4 hit = vec4(equal(ids, ivec4(int(load1(src_history, 1, t, 0)))));
        if (t >= recent_from) recent += hit;
        if (t >= counted_from) count += hit;
    }
    vec4 logit = lanes(src_logits, out_cols, row, col);
    vec4 factor = mix(vec4(a.x), vec4(a.y), greaterThan(logit, vec4(0.0)));
    logit = mix(logit, logit * factor, greaterThan(recent, vec4(0.0)));
    logit = mix(logit, logit - (a.w + count * b.x), greaterThan(count, vec4(0.0)));
    return logit + lanes(src_bias, out_cols, 0, col);
}
