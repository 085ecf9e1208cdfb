// Q4_K: x = (d * sc) * q - (dmin * m).
fn integers(group: u32) -> Integers {
    let q = weights[PLANE0 + group];
    let dm = q4_k_scale(weights[PLANE1 + (group >> 3u)], group & 7u);
    let low = vec4<u32>(nibble_bytes(q.x), nibble_bytes(q.y));
    let high = vec4<u32>(nibble_bytes(q.z), nibble_bytes(q.w));
    return Integers(low, high, vec2<f32>(dm.x), vec2<f32>(-dm.y));
}
