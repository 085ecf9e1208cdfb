fn w_scales(group: u32) -> vec4<f32> {
    let block = group >> 0;
    let d = half_of(w[p.w_plane2 + (block >> 3u)], block & 7u);
    return vec4<f32>(d, 0.0, d, 0.0);
}

fn w_value(q: vec4<f32>, scale: vec2<f32>) -> vec4<f32> {
    return scale.x * (q - 16.0);
}

fn w_decode32(group: u32) -> array<vec4<f32>, 8> {
    let q = w[p.w_plane0 + group];
    let h = w[p.w_plane1 + (group >> 2u)][group & 3u];
    let s = w_scales(group);
    return array<vec4<f32>, 8>(
        w_value(fives(q.x, h), s.xy), w_value(fives(q.x >> 16u, h >> 4u), s.xy),
        w_value(fives(q.y, h >> 8u), s.xy), w_value(fives(q.y >> 16u, h >> 12u), s.xy),
        w_value(fives(q.z, h >> 16u), s.zw), w_value(fives(q.z >> 16u, h >> 20u), s.zw),
        w_value(fives(q.w, h >> 24u), s.zw), w_value(fives(q.w >> 16u, h >> 28u), s.zw));
}

fn w_decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return w_decode32(row * p.w_groups + group);
}
fn w_scales(group: u32) -> vec4<f32> {
    let block = group >> 0;
    let d = half_of(w[p.w_plane2 + (block >> 3u)], block & 7u);
    return vec4<f32>(d, 0.0, d, 0.0);
}

fn w_integers(group: u32) -> Integers {
    let s = w_scales(group);
    let q = w[p.w_plane0 + group];
    let h = w[p.w_plane1 + (group >> 2u)][group & 3u];
    let low = vec4<u32>(nibble_bytes(q.x) | bit_bytes(h, 4u), nibble_bytes(q.y) | bit_bytes(h >> 8u, 4u));
    let high = vec4<u32>(nibble_bytes(q.z) | bit_bytes(h >> 16u, 4u), nibble_bytes(q.w) | bit_bytes(h >> 24u, 4u));
    return Integers(low, high, s.xz, -16.0 * s.xz);
}
