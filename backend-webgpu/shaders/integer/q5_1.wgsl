// Q5_1: x = d * q + m.
fn integers(group: u32) -> Integers {
    let q = weights[PLANE0 + group];
    let h = weights[PLANE1 + (group >> 2u)][group & 3u];
    let dm = half_pair(weights[PLANE2 + (group >> 2u)][group & 3u]);
    let low = vec4<u32>(nibble_bytes(q.x) | fifth_bits(h), nibble_bytes(q.y) | fifth_bits(h >> 8u));
    let high = vec4<u32>(nibble_bytes(q.z) | fifth_bits(h >> 16u), nibble_bytes(q.w) | fifth_bits(h >> 24u));
    return Integers(low, high, vec2<f32>(dm.x), vec2<f32>(dm.y));
}
