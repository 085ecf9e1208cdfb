// How tokens are drawn: alike after all rows of a step, of which a single one is the last; or after each row as its sequence
// says.
//!if SEQUENCES
fn drawn_at(row: u32) -> u32 {
    return position_of(row);
}

fn seed_of(row: u32) -> vec2<u32> {
    return step.each[2u * row].zw;
}

fn top_k_of(row: u32) -> u32 {
    return step.each[2u * row + 1u].x;
}

fn top_p_of(row: u32) -> f32 {
    return bitcast<f32>(step.each[2u * row + 1u].y);
}

fn temperature_of(row: u32) -> f32 {
    return bitcast<f32>(step.each[2u * row + 1u].z);
}
//!else
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
//!end
