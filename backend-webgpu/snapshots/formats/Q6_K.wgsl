fn w_scales(group: u32) -> vec4<f32> {
    let pair = w[p.w_plane2 + (group >> 3u)][(group & 7u) >> 1u] >> ((group & 1u) * 16u);
    let both = half_of(w[p.w_plane3 + (group >> 6u)], (group >> 3u) & 7u) * signed_bytes(pair).xy;
    return vec4<f32>(both.x, 0.0, both.y, 0.0);
}

fn w_value(q: vec4<f32>, scale: vec2<f32>) -> vec4<f32> {
    return scale.x * (q - 32.0);
}

fn w_decode32(group: u32) -> array<vec4<f32>, 8> {
    let q = w[p.w_plane0 + group];
    let pairs = w[p.w_plane1 + (group >> 1u)];
    let h = select(pairs.xy, pairs.zw, (group & 1u) == 1u);
    let s = w_scales(group);
    return array<vec4<f32>, 8>(
        w_value(sixes(q.x, h.x), s.xy), w_value(sixes(q.x >> 16u, h.x >> 8u), s.xy),
        w_value(sixes(q.y, h.x >> 16u), s.xy), w_value(sixes(q.y >> 16u, h.x >> 24u), s.xy),
        w_value(sixes(q.z, h.y), s.zw), w_value(sixes(q.z >> 16u, h.y >> 8u), s.zw),
        w_value(sixes(q.w, h.y >> 16u), s.zw), w_value(sixes(q.w >> 16u, h.y >> 24u), s.zw));
}

fn w_decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return w_decode32(row * p.w_groups + group);
}
fn w_scales(group: u32) -> vec4<f32> {
    let pair = w[p.w_plane2 + (group >> 3u)][(group & 7u) >> 1u] >> ((group & 1u) * 16u);
    let both = half_of(w[p.w_plane3 + (group >> 6u)], (group >> 3u) & 7u) * signed_bytes(pair).xy;
    return vec4<f32>(both.x, 0.0, both.y, 0.0);
}

fn w_integers(group: u32) -> Integers {
    let s = w_scales(group);
    let q = w[p.w_plane0 + group];
    let pairs = w[p.w_plane1 + (group >> 1u)];
    let h = select(pairs.xy, pairs.zw, (group & 1u) == 1u);
    let low = vec4<u32>(nibble_bytes(q.x) | pair_bytes(h.x, 4u), nibble_bytes(q.y) | pair_bytes(h.x >> 16u, 4u));
    let high = vec4<u32>(nibble_bytes(q.z) | pair_bytes(h.y, 4u), nibble_bytes(q.w) | pair_bytes(h.y >> 16u, 4u));
    return Integers(low, high, s.xz, -32.0 * s.xz);
}
