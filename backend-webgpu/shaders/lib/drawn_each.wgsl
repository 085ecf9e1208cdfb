// How tokens are drawn: after each row as its sequence says.
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
