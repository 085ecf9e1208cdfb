// How tokens are drawn: alike after all rows of a step. A single row is the step's last.
fn drawn_at(row: u32) -> u32 {
    return position_of(select(row, step.rows - 1u, p.rows == 1u));
}

fn seed_of(row: u32) -> vec2<u32> {
    return vec2<u32>(step.seed_lo, step.seed_hi);
}

fn top_k_of(row: u32) -> u32 {
    return step.top_k;
}

fn top_p_of(row: u32) -> f32 {
    return step.top_p;
}

fn temperature_of(row: u32) -> f32 {
    return step.temperature;
}
