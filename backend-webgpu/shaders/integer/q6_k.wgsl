// Q6_K: x = (d * scale) * q - 32 (d * scale); a group has two scales.
fn integers(group: u32) -> Integers {
    let q = weights[PLANE0 + group];
    let pairs = weights[PLANE1 + (group >> 1u)];
    let h = select(pairs.xy, pairs.zw, (group & 1u) == 1u);
    let scales = weights[PLANE2 + (group >> 3u)][(group & 7u) >> 1u] >> ((group & 1u) * 16u);
    let d = half_of(weights[PLANE3 + (group >> 6u)], (group >> 3u) & 7u) * signed_bytes(scales).xy;
    let low = vec4<u32>(nibble_bytes(q.x) | upper_pairs(h.x), nibble_bytes(q.y) | upper_pairs(h.x >> 16u));
    let high = vec4<u32>(nibble_bytes(q.z) | upper_pairs(h.y), nibble_bytes(q.w) | upper_pairs(h.y >> 16u));
    return Integers(low, high, d, -32.0 * d);
}
