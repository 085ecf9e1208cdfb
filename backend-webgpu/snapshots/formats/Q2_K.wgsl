fn w_scales(group: u32) -> vec4<f32> {
    let pair = w[p.w_plane1 + (group >> 3u)][(group & 7u) >> 1u] >> ((group & 1u) * 16u);
    let d = half_pair(w[p.w_plane2 + (group >> 5u)][(group >> 3u) & 3u]);
    return nibbles(pair) * vec4<f32>(d.x, -d.y, d.x, -d.y);
}

fn w_value(q: vec4<f32>, scale: vec2<f32>) -> vec4<f32> {
    return scale.x * q + scale.y;
}

fn w_decode32(group: u32) -> array<vec4<f32>, 8> {
    let two = w[p.w_plane0 + (group >> 1u)];
    let q = select(two.xy, two.zw, (group & 1u) == 1u);
    let s = w_scales(group);
    return array<vec4<f32>, 8>(
        w_value(pairs(q.x), s.xy), w_value(pairs(q.x >> 8u), s.xy),
        w_value(pairs(q.x >> 16u), s.xy), w_value(pairs(q.x >> 24u), s.xy),
        w_value(pairs(q.y), s.zw), w_value(pairs(q.y >> 8u), s.zw),
        w_value(pairs(q.y >> 16u), s.zw), w_value(pairs(q.y >> 24u), s.zw));
}

fn w_decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return w_decode32(row * p.w_groups + group);
}
fn w_scales(group: u32) -> vec4<f32> {
    let pair = w[p.w_plane1 + (group >> 3u)][(group & 7u) >> 1u] >> ((group & 1u) * 16u);
    let d = half_pair(w[p.w_plane2 + (group >> 5u)][(group >> 3u) & 3u]);
    return nibbles(pair) * vec4<f32>(d.x, -d.y, d.x, -d.y);
}

fn w_integers(group: u32) -> Integers {
    let s = w_scales(group);
    let two = w[p.w_plane0 + (group >> 1u)];
    let q = select(two.xy, two.zw, (group & 1u) == 1u);
    let low = vec4<u32>(pair_bytes(q.x, 0u), pair_bytes(q.x >> 16u, 0u));
    let high = vec4<u32>(pair_bytes(q.y, 0u), pair_bytes(q.y >> 16u, 0u));
    return Integers(low, high, s.xz, s.yw);
}
