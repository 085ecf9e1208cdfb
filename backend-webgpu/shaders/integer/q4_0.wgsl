// Q4_0: x = d * q - 8 d.
fn integers(group: u32) -> Integers {
    let q = weights[PLANE0 + group];
    let d = half_of(weights[PLANE1 + (group >> 3u)], group & 7u);
    let low = vec4<u32>(nibble_bytes(q.x), nibble_bytes(q.y));
    let high = vec4<u32>(nibble_bytes(q.z), nibble_bytes(q.w));
    return Integers(low, high, vec2<f32>(d), vec2<f32>(-8.0 * d));
}
