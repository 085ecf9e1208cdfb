// Q4_0: x = d * (q - 8).
fn decode32(group: u32) -> array<vec4<f32>, 8> {
    let q = weights[PLANE0 + group];
    let d = half_of(weights[PLANE1 + (group >> 3u)], group & 7u);
    return array<vec4<f32>, 8>(
        d * (nibbles(q.x) - 8.0), d * (nibbles(q.x >> 16u) - 8.0),
        d * (nibbles(q.y) - 8.0), d * (nibbles(q.y >> 16u) - 8.0),
        d * (nibbles(q.z) - 8.0), d * (nibbles(q.z >> 16u) - 8.0),
        d * (nibbles(q.w) - 8.0), d * (nibbles(q.w >> 16u) - 8.0));
}
