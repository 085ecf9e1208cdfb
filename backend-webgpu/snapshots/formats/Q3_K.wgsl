fn w_scales(group: u32) -> vec4<f32> {
    let word = (group >> 3u) * 3u;
    let sub = (group & 7u) * 2u;
    let low_at = word + ((sub >> 2u) & 1u);
    let low = w[p.w_plane2 + (low_at >> 2u)][low_at & 3u] >> (8u * (sub & 3u) + 4u * (sub >> 3u));
    let high_at = word + 2u;
    let high = w[p.w_plane2 + (high_at >> 2u)][high_at & 3u] >> (8u * (sub & 3u) + 2u * (sub >> 2u));
    let pairs = vec2<u32>(high, high >> 8u) & vec2<u32>(3u);
    let six = (vec2<u32>(low, low >> 8u) & vec2<u32>(15u)) | (pairs << vec2<u32>(4u));
    let both = half_of(w[p.w_plane3 + (group >> 6u)], (group >> 3u) & 7u) * (vec2<f32>(six) - 32.0);
    return vec4<f32>(both.x, 0.0, both.y, 0.0);
}

fn w_value(q: vec4<f32>, scale: vec2<f32>) -> vec4<f32> {
    return scale.x * (q - 4.0);
}

fn w_decode32(group: u32) -> array<vec4<f32>, 8> {
    let two = w[p.w_plane0 + (group >> 1u)];
    let q = select(two.xy, two.zw, (group & 1u) == 1u);
    let h = w[p.w_plane1 + (group >> 2u)][group & 3u];
    let s = w_scales(group);
    return array<vec4<f32>, 8>(
        w_value(threes(q.x, h), s.xy), w_value(threes(q.x >> 8u, h >> 4u), s.xy),
        w_value(threes(q.x >> 16u, h >> 8u), s.xy), w_value(threes(q.x >> 24u, h >> 12u), s.xy),
        w_value(threes(q.y, h >> 16u), s.zw), w_value(threes(q.y >> 8u, h >> 20u), s.zw),
        w_value(threes(q.y >> 16u, h >> 24u), s.zw), w_value(threes(q.y >> 24u, h >> 28u), s.zw));
}

fn w_decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return w_decode32(row * p.w_groups + group);
}
fn w_scales(group: u32) -> vec4<f32> {
    let word = (group >> 3u) * 3u;
    let sub = (group & 7u) * 2u;
    let low_at = word + ((sub >> 2u) & 1u);
    let low = w[p.w_plane2 + (low_at >> 2u)][low_at & 3u] >> (8u * (sub & 3u) + 4u * (sub >> 3u));
    let high_at = word + 2u;
    let high = w[p.w_plane2 + (high_at >> 2u)][high_at & 3u] >> (8u * (sub & 3u) + 2u * (sub >> 2u));
    let pairs = vec2<u32>(high, high >> 8u) & vec2<u32>(3u);
    let six = (vec2<u32>(low, low >> 8u) & vec2<u32>(15u)) | (pairs << vec2<u32>(4u));
    let both = half_of(w[p.w_plane3 + (group >> 6u)], (group >> 3u) & 7u) * (vec2<f32>(six) - 32.0);
    return vec4<f32>(both.x, 0.0, both.y, 0.0);
}

fn w_integers(group: u32) -> Integers {
    let s = w_scales(group);
    let two = w[p.w_plane0 + (group >> 1u)];
    let q = select(two.xy, two.zw, (group & 1u) == 1u);
    let h = w[p.w_plane1 + (group >> 2u)][group & 3u];
    let low = vec4<u32>(pair_bytes(q.x, 0u) | bit_bytes(h, 2u), pair_bytes(q.x >> 16u, 0u) | bit_bytes(h >> 8u, 2u));
    let high = vec4<u32>(pair_bytes(q.y, 0u) | bit_bytes(h >> 16u, 2u), pair_bytes(q.y >> 16u, 0u) | bit_bytes(h >> 24u, 2u));
    return Integers(low, high, s.xz, -4.0 * s.xz);
}
