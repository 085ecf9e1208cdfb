fn w_four(a: u32, b: u32) -> vec4<f32> {
    return vec4<f32>(half_pair(a), half_pair(b));
}

fn w_decode32(group: u32) -> array<vec4<f32>, 8> {
    let t = p.w_plane0 + group * 4u;
    let a = w[t];
    let b = w[t + 1u];
    let c = w[t + 2u];
    let d = w[t + 3u];
    return array<vec4<f32>, 8>(
        w_four(a.x, a.y), w_four(a.z, a.w), w_four(b.x, b.y), w_four(b.z, b.w),
        w_four(c.x, c.y), w_four(c.z, c.w), w_four(d.x, d.y), w_four(d.z, d.w));
}

fn w_decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return w_decode32(row * p.w_groups + group);
}
