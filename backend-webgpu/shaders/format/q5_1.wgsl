// Q5_1: x = d * q + m.
fn decode32(group: u32) -> array<vec4<f32>, 8> {
    let q = weights[PLANE0 + group];
    let h = weights[PLANE1 + (group >> 2u)][group & 3u];
    let dm = half_pair(weights[PLANE2 + (group >> 2u)][group & 3u]);
    let d = dm.x;
    let m = dm.y;
    return array<vec4<f32>, 8>(
        d * fives(q.x, h) + m, d * fives(q.x >> 16u, h >> 4u) + m,
        d * fives(q.y, h >> 8u) + m, d * fives(q.y >> 16u, h >> 12u) + m,
        d * fives(q.z, h >> 16u) + m, d * fives(q.z >> 16u, h >> 20u) + m,
        d * fives(q.w, h >> 24u) + m, d * fives(q.w >> 16u, h >> 28u) + m);
}
