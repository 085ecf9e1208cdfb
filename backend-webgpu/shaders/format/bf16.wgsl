// BF16: 4 texels a group, 8 upper halves of binary32 each.
fn upper4(a: u32, b: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(vec4<u32>(a << 16u, a & 0xffff0000u, b << 16u, b & 0xffff0000u));
}

fn decode32(group: u32) -> array<vec4<f32>, 8> {
    let t = PLANE0 + group * 4u;
    let a = weights[t];
    let b = weights[t + 1u];
    let c = weights[t + 2u];
    let d = weights[t + 3u];
    return array<vec4<f32>, 8>(
        upper4(a.x, a.y), upper4(a.z, a.w), upper4(b.x, b.y), upper4(b.z, b.w),
        upper4(c.x, c.y), upper4(c.z, c.w), upper4(d.x, d.y), upper4(d.z, d.w));
}
