// Tables of 16 levels: x = scale * level, which codes of 4 bits stand for. LEVEL0 .. LEVEL3 are the levels, a signed byte
// each.
fn levels(word: u32) -> vec4<f32> {
    let q = (vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    // The word of four levels, then the level in it.
    let odd = (q & vec4<u32>(4u)) != vec4<u32>(0u);
    let first = select(vec4<u32>(LEVEL0), vec4<u32>(LEVEL1), odd);
    let last = select(vec4<u32>(LEVEL2), vec4<u32>(LEVEL3), odd);
    let four = select(first, last, q >= vec4<u32>(8u));
    let shift = vec4<u32>(24u) - 8u * (q & vec4<u32>(3u));
    return vec4<f32>(bitcast<vec4<i32>>(four << shift) >> vec4<u32>(24u));
}

fn decode32(group: u32) -> array<vec4<f32>, 8> {
    let s = scales(group);
    let q = weights[CODES + group];
    return array<vec4<f32>, 8>(
        s.x * levels(q.x), s.x * levels(q.x >> 16u), s.x * levels(q.y), s.x * levels(q.y >> 16u),
        s.z * levels(q.z), s.z * levels(q.z >> 16u), s.z * levels(q.w), s.z * levels(q.w >> 16u));
}
