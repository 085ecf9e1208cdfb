// Q8_0: x = d * q.
fn integers(group: u32) -> Integers {
    let d = half_of(weights[PLANE1 + (group >> 3u)], group & 7u);
    return Integers(weights[PLANE0 + group * 2u], weights[PLANE0 + group * 2u + 1u], vec2<f32>(d), vec2<f32>(0.0));
}
