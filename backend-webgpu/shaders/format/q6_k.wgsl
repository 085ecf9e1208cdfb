// Q6_K: x = (d * scale) * (q - 32); a group has two scales, one for each 16 elements.
fn decode32(group: u32) -> array<vec4<f32>, 8> {
    let q = weights[PLANE0 + group];
    let pairs = weights[PLANE1 + (group >> 1u)];
    let h = select(pairs.xy, pairs.zw, (group & 1u) == 1u);
    let scales = weights[PLANE2 + (group >> 3u)][(group & 7u) >> 1u] >> ((group & 1u) * 16u);
    let both = signed_bytes(scales);
    let d = half_of(weights[PLANE3 + (group >> 6u)], (group >> 3u) & 7u);
    let a = d * both.x;
    let b = d * both.y;
    return array<vec4<f32>, 8>(
        a * (sixes(q.x, h.x) - 32.0), a * (sixes(q.x >> 16u, h.x >> 8u) - 32.0),
        a * (sixes(q.y, h.x >> 16u) - 32.0), a * (sixes(q.y >> 16u, h.x >> 24u) - 32.0),
        b * (sixes(q.z, h.y) - 32.0), b * (sixes(q.z >> 16u, h.y >> 8u) - 32.0),
        b * (sixes(q.w, h.y >> 16u) - 32.0), b * (sixes(q.w >> 16u, h.y >> 24u) - 32.0));
}
