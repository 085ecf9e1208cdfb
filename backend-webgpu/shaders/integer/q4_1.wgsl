// Q4_1: x = d * q + m.
fn integers(group: u32) -> Integers {
    let q = weights[PLANE0 + group];
    let dm = half_pair(weights[PLANE1 + (group >> 2u)][group & 3u]);
    let low = vec4<u32>(nibble_bytes(q.x), nibble_bytes(q.y));
    let high = vec4<u32>(nibble_bytes(q.z), nibble_bytes(q.w));
    return Integers(low, high, dm.xx, dm.yy);
}
