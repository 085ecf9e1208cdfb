// F16: 4 texels a group, 8 halves each.
fn halves4(a: u32, b: u32) -> vec4<f32> {
    return vec4<f32>(half_pair(a), half_pair(b));
}

fn decode32(group: u32) -> array<vec4<f32>, 8> {
    let t = PLANE0 + group * 4u;
    let a = weights[t];
    let b = weights[t + 1u];
    let c = weights[t + 2u];
    let d = weights[t + 3u];
    return array<vec4<f32>, 8>(
        halves4(a.x, a.y), halves4(a.z, a.w), halves4(b.x, b.y), halves4(b.z, b.w),
        halves4(c.x, c.y), halves4(c.z, c.w), halves4(d.x, d.y), halves4(d.z, d.w));
}
