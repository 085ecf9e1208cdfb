// Q5_0: x = d * q - 16 d.
fn integers(group: u32) -> Integers {
    let q = weights[PLANE0 + group];
    let h = weights[PLANE1 + (group >> 2u)][group & 3u];
    let d = half_of(weights[PLANE2 + (group >> 3u)], group & 7u);
    let low = vec4<u32>(nibble_bytes(q.x) | fifth_bits(h), nibble_bytes(q.y) | fifth_bits(h >> 8u));
    let high = vec4<u32>(nibble_bytes(q.z) | fifth_bits(h >> 16u), nibble_bytes(q.w) | fifth_bits(h >> 24u));
    return Integers(low, high, vec2<f32>(d), vec2<f32>(-16.0 * d));
}
