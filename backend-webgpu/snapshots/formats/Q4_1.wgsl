fn w_scales(group: u32) -> vec4<f32> {
    return half_pair(w[p.w_plane1 + (group >> 2u)][group & 3u]).xyxy;
}

fn w_value(q: vec4<f32>, scale: vec2<f32>) -> vec4<f32> {
    return scale.x * q + scale.y;
}

fn w_decode32(group: u32) -> array<vec4<f32>, 8> {
    let q = w[p.w_plane0 + group];
    let s = w_scales(group);
    return array<vec4<f32>, 8>(
        w_value(nibbles(q.x), s.xy), w_value(nibbles(q.x >> 16u), s.xy),
        w_value(nibbles(q.y), s.xy), w_value(nibbles(q.y >> 16u), s.xy),
        w_value(nibbles(q.z), s.zw), w_value(nibbles(q.z >> 16u), s.zw),
        w_value(nibbles(q.w), s.zw), w_value(nibbles(q.w >> 16u), s.zw));
}

fn w_decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return w_decode32(row * p.w_groups + group);
}
fn w_scales(group: u32) -> vec4<f32> {
    return half_pair(w[p.w_plane1 + (group >> 2u)][group & 3u]).xyxy;
}

fn w_integers(group: u32) -> Integers {
    let s = w_scales(group);
    let q = w[p.w_plane0 + group];
    let low = vec4<u32>(nibble_bytes(q.x), nibble_bytes(q.y));
    let high = vec4<u32>(nibble_bytes(q.z), nibble_bytes(q.w));
    return Integers(low, high, s.xz, s.yw);
}
