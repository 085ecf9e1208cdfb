fn w_scales(group: u32) -> vec4<f32> {
    let block = group >> 2;
    let d = half_of(w[p.w_plane1 + (block >> 3u)], block & 7u);
    return vec4<f32>(d, 0.0, d, 0.0);
}

fn w_value(q: vec4<f32>, scale: vec2<f32>) -> vec4<f32> {
    return scale.x * (q - 1.0);
}

fn w_decode32(group: u32) -> array<vec4<f32>, 8> {
    let q = w[p.w_plane0 + (group >> 2u)][group & 3u];
    let s = w_scales(group);
    return array<vec4<f32>, 8>(
        w_value(twos(q), s.xy), w_value(twos(q >> 4u), s.xy),
        w_value(twos(q >> 8u), s.xy), w_value(twos(q >> 12u), s.xy),
        w_value(twos(q >> 16u), s.zw), w_value(twos(q >> 20u), s.zw),
        w_value(twos(q >> 24u), s.zw), w_value(twos(q >> 28u), s.zw));
}

fn w_decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return w_decode32(row * p.w_groups + group);
}
fn w_scales(group: u32) -> vec4<f32> {
    let block = group >> 2;
    let d = half_of(w[p.w_plane1 + (block >> 3u)], block & 7u);
    return vec4<f32>(d, 0.0, d, 0.0);
}

fn w_integers(group: u32) -> Integers {
    let s = w_scales(group);
    let q = w[p.w_plane0 + (group >> 2u)][group & 3u];
    let low = vec4<u32>(bit_bytes(q, 1u), bit_bytes(q >> 8u, 1u));
    let high = vec4<u32>(bit_bytes(q >> 16u, 1u), bit_bytes(q >> 24u, 1u));
    return Integers(low, high, s.xz, -1.0 * s.xz);
}
