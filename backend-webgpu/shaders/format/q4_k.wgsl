// Q4_K: x = (d * sc) * q - (dmin * m); a group is one of the 8 sub-blocks of a block.
fn decode32(group: u32) -> array<vec4<f32>, 8> {
    let q = weights[PLANE0 + group];
    let head = weights[PLANE1 + (group >> 3u)];
    let dm = half_pair(head.x);
    let shift = (group & 3u) * 8u;
    let k0 = (head.y >> shift) & 255u;
    let k1 = (head.z >> shift) & 255u;
    let k2 = (head.w >> shift) & 255u;
    // The last four sub-blocks have their high bits in the bytes of the first four.
    let late = (group & 4u) != 0u;
    let sc = select(k0 & 63u, (k2 & 15u) | ((k0 >> 6u) << 4u), late);
    let mn = select(k1 & 63u, (k2 >> 4u) | ((k1 >> 6u) << 4u), late);
    let d = dm.x * f32(sc);
    let m = dm.y * f32(mn);
    return array<vec4<f32>, 8>(
        d * nibbles(q.x) - m, d * nibbles(q.x >> 16u) - m, d * nibbles(q.y) - m, d * nibbles(q.y >> 16u) - m,
        d * nibbles(q.z) - m, d * nibbles(q.z >> 16u) - m, d * nibbles(q.w) - m, d * nibbles(q.w >> 16u) - m);
}
