// Q4_K: x = (d * sc) * q - (dmin * m); a group is one of the 8 sub-blocks of a block.
fn decode32(group: u32) -> array<vec4<f32>, 8> {
    let q = weights[PLANE0 + group];
    let dm = q4_k_scale(weights[PLANE1 + (group >> 3u)], group & 7u);
    let d = dm.x;
    let m = dm.y;
    return array<vec4<f32>, 8>(
        d * nibbles(q.x) - m, d * nibbles(q.x >> 16u) - m, d * nibbles(q.y) - m, d * nibbles(q.y >> 16u) - m,
        d * nibbles(q.z) - m, d * nibbles(q.z >> 16u) - m, d * nibbles(q.w) - m, d * nibbles(q.w >> 16u) - m);
}
