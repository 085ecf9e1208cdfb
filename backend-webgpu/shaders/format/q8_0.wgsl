// Q8_0: x = d * q.
fn decode32(group: u32) -> array<vec4<f32>, 8> {
    let a = weights[PLANE0 + group * 2u];
    let b = weights[PLANE0 + group * 2u + 1u];
    let d = half_of(weights[PLANE1 + (group >> 3u)], group & 7u);
    return array<vec4<f32>, 8>(
        d * signed_bytes(a.x), d * signed_bytes(a.y), d * signed_bytes(a.z), d * signed_bytes(a.w),
        d * signed_bytes(b.x), d * signed_bytes(b.y), d * signed_bytes(b.z), d * signed_bytes(b.w));
}
