// Tables of 16 levels as integers. Each of four bytes chooses its level: LEVEL0 .. LEVEL3 are the levels, a signed byte
// each.
fn chosen(codes: vec2<u32>) -> vec2<u32> {
    let q = vec4<u32>(codes.x, codes.x >> 8u, codes.x >> 16u, codes.x >> 24u);
    let r = vec4<u32>(codes.y, codes.y >> 8u, codes.y >> 16u, codes.y >> 24u);
    return vec2<u32>(level_bytes(q & vec4<u32>(15u)), level_bytes(r & vec4<u32>(15u)));
}

fn level_bytes(q: vec4<u32>) -> u32 {
    let odd = (q & vec4<u32>(4u)) != vec4<u32>(0u);
    let first = select(vec4<u32>(LEVEL0), vec4<u32>(LEVEL1), odd);
    let last = select(vec4<u32>(LEVEL2), vec4<u32>(LEVEL3), odd);
    let four = select(first, last, q >= vec4<u32>(8u));
    let bytes = (four >> (8u * (q & vec4<u32>(3u)))) & vec4<u32>(255u);
    return bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
}

fn integers(group: u32) -> Integers {
    let s = scales(group);
    let q = weights[CODES + group];
    let low = vec4<u32>(chosen(nibble_bytes(q.x)), chosen(nibble_bytes(q.y)));
    let high = vec4<u32>(chosen(nibble_bytes(q.z)), chosen(nibble_bytes(q.w)));
    return Integers(low, high, s.xz, vec2<f32>(0.0));
}
