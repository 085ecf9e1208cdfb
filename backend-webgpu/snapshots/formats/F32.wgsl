fn w_decode32(group: u32) -> array<vec4<f32>, 8> {
    let t = p.w_plane0 + group * 8u;
    return array<vec4<f32>, 8>(
        bitcast<vec4<f32>>(w[t]), bitcast<vec4<f32>>(w[t + 1u]),
        bitcast<vec4<f32>>(w[t + 2u]), bitcast<vec4<f32>>(w[t + 3u]),
        bitcast<vec4<f32>>(w[t + 4u]), bitcast<vec4<f32>>(w[t + 5u]),
        bitcast<vec4<f32>>(w[t + 6u]), bitcast<vec4<f32>>(w[t + 7u]));
}

fn w_decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return w_decode32(row * p.w_groups + group);
}
