// Some drivers compute tanh from exponentials that overflow. NaN, which a clamp may lose, stays NaN; it is told by its bits.
fn safe_tanh(x: f32) -> f32 {
    let nan = (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
    return select(tanh(clamp(x, -15.0, 15.0)), x, nan);
}
