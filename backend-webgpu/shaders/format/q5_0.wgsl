// Q5_0: x = d * (q - 16).
fn decode32(group: u32) -> array<vec4<f32>, 8> {
    let q = weights[PLANE0 + group];
    let h = weights[PLANE1 + (group >> 2u)][group & 3u];
    let d = half_of(weights[PLANE2 + (group >> 3u)], group & 7u);
    return array<vec4<f32>, 8>(
        d * (fives(q.x, h) - 16.0), d * (fives(q.x >> 16u, h >> 4u) - 16.0),
        d * (fives(q.y, h >> 8u) - 16.0), d * (fives(q.y >> 16u, h >> 12u) - 16.0),
        d * (fives(q.z, h >> 16u) - 16.0), d * (fives(q.z >> 16u, h >> 20u) - 16.0),
        d * (fives(q.w, h >> 24u) - 16.0), d * (fives(q.w >> 16u, h >> 28u) - 16.0));
}
