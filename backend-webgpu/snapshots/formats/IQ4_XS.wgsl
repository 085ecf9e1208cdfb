fn w_scales(group: u32) -> vec4<f32> {
    let texel = w[p.w_plane1 + (group >> 4u)];
    let head = select(texel.xy, texel.zw, (group & 8u) != 0u);
    let sub = group & 7u;
    let six = ((head.y >> (4u * sub)) & 15u) | (((head.x >> (16u + 2u * sub)) & 3u) << 4u);
    let d = half_value(head.x & 0xffffu) * (f32(six) - 32.0);
    return vec4<f32>(d, 0.0, d, 0.0);
}

fn w_levels(word: u32) -> vec4<f32> {
    let q = (vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    let odd = (q & vec4<u32>(4u)) != vec4<u32>(0u);
    let first = select(vec4<u32>(0xbfad9881u), vec4<u32>(0xf6eaddcfu), odd);
    let last = select(vec4<u32>(0x26190d01u), vec4<u32>(0x71594535u), odd);
    let four = select(first, last, q >= vec4<u32>(8u));
    let shift = vec4<u32>(24u) - 8u * (q & vec4<u32>(3u));
    return vec4<f32>(bitcast<vec4<i32>>(four << shift) >> vec4<u32>(24u));
}

fn w_decode32(group: u32) -> array<vec4<f32>, 8> {
    let s = w_scales(group);
    let q = w[p.w_plane0 + group];
    return array<vec4<f32>, 8>(
        s.x * w_levels(q.x), s.x * w_levels(q.x >> 16u), s.x * w_levels(q.y), s.x * w_levels(q.y >> 16u),
        s.z * w_levels(q.z), s.z * w_levels(q.z >> 16u), s.z * w_levels(q.w), s.z * w_levels(q.w >> 16u));
}

fn w_decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return w_decode32(row * p.w_groups + group);
}
fn w_scales(group: u32) -> vec4<f32> {
    let texel = w[p.w_plane1 + (group >> 4u)];
    let head = select(texel.xy, texel.zw, (group & 8u) != 0u);
    let sub = group & 7u;
    let six = ((head.y >> (4u * sub)) & 15u) | (((head.x >> (16u + 2u * sub)) & 3u) << 4u);
    let d = half_value(head.x & 0xffffu) * (f32(six) - 32.0);
    return vec4<f32>(d, 0.0, d, 0.0);
}

fn w_chosen(codes: vec2<u32>) -> vec2<u32> {
    let q = vec4<u32>(codes.x, codes.x >> 8u, codes.x >> 16u, codes.x >> 24u);
    let r = vec4<u32>(codes.y, codes.y >> 8u, codes.y >> 16u, codes.y >> 24u);
    return vec2<u32>(w_level_bytes(q & vec4<u32>(15u)), w_level_bytes(r & vec4<u32>(15u)));
}

fn w_level_bytes(q: vec4<u32>) -> u32 {
    let odd = (q & vec4<u32>(4u)) != vec4<u32>(0u);
    let first = select(vec4<u32>(0xbfad9881u), vec4<u32>(0xf6eaddcfu), odd);
    let last = select(vec4<u32>(0x26190d01u), vec4<u32>(0x71594535u), odd);
    let four = select(first, last, q >= vec4<u32>(8u));
    let bytes = (four >> (8u * (q & vec4<u32>(3u)))) & vec4<u32>(255u);
    return bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
}

fn w_integers(group: u32) -> Integers {
    let s = w_scales(group);
    let q = w[p.w_plane0 + group];
    let low = vec4<u32>(w_chosen(nibble_bytes(q.x)), w_chosen(nibble_bytes(q.y)));
    let high = vec4<u32>(w_chosen(nibble_bytes(q.z)), w_chosen(nibble_bytes(q.w)));
    return Integers(low, high, s.xz, vec2<f32>(0.0));
}
