// Q4_1: x = d * q + m.
fn decode32(group: u32) -> array<vec4<f32>, 8> {
    let q = weights[PLANE0 + group];
    let dm = half_pair(weights[PLANE1 + (group >> 2u)][group & 3u]);
    let d = dm.x;
    let m = dm.y;
    return array<vec4<f32>, 8>(
        d * nibbles(q.x) + m, d * nibbles(q.x >> 16u) + m, d * nibbles(q.y) + m, d * nibbles(q.y >> 16u) + m,
        d * nibbles(q.z) + m, d * nibbles(q.z >> 16u) + m, d * nibbles(q.w) + m, d * nibbles(q.w >> 16u) + m);
}
