// Draws one of the candidates, which come in descending order; -1 if one is not finite. There are few, so one invocation
// does it for each row. A single row is the step's last.
//!include lib/finite.wgsl
//!include lib/position.wgsl
//!include lib/drawn.wgsl

fn pcg(x: u32) -> u32 {
    let state = x * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return (word >> 22u) ^ word;
}

fn uniform_draw(row: u32) -> f32 {
    let seed = seed_of(row);
    let h = pcg(drawn_at(row) ^ pcg(seed.x ^ pcg(seed.y)));
    return f32(h >> 8u) / 16777216.0;
}

fn weight(row: u32, i: u32) -> f32 {
    return exp((values[row * p.k + i] - values[row * p.k]) / temperature_of(row));
}

fn choose(row: u32) -> u32 {
    if (!(temperature_of(row) > 0.0)) {
        return 0u;
    }
    let n = select(p.k, min(top_k_of(row), p.k), top_k_of(row) > 0u);
    var total = 0.0;
    for (var i = 0u; i < n; i++) {
        total += weight(row, i);
    }
    var kept = n;
    var stayed = 0.0;
    for (var i = 0u; i < n; i++) {
//!if MIN_P
        if (i > 0u && weight(row, i) < penalties[before_sequence(row, 8u) + 7u]) {
            kept = i;
            break;
        }
//!end
        stayed += weight(row, i);
        if (stayed >= top_p_of(row) * total) {
            kept = i + 1u;
            break;
        }
    }
    let draw = uniform_draw(row) * stayed;
    var running = 0.0;
    for (var i = 0u; i < kept; i++) {
        running += weight(row, i);
        if (running > draw) {
            return i;
        }
    }
    return kept - 1u;
}

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let wid = group_id + step.origin;
    let row = wid.y * groups.x + wid.x;
    if (row >= p.rows) {
        return;
    }
    for (var i = 0u; i < p.k; i++) {
        if (!is_finite(values[row * p.k + i])) {
            out[row] = -1;
            return;
        }
    }
    out[row] = ids[row * p.k + choose(row)];
}
