// Floats. F32: 8 texels a group; F16 and BF16: 4 texels of 8 each, two a word.
//!if F32
fn decode32(group: u32) -> array<vec4<f32>, 8> {
    let t = VALUES + group * 8u;
    return array<vec4<f32>, 8>(
        bitcast<vec4<f32>>(weights[t]), bitcast<vec4<f32>>(weights[t + 1u]),
        bitcast<vec4<f32>>(weights[t + 2u]), bitcast<vec4<f32>>(weights[t + 3u]),
        bitcast<vec4<f32>>(weights[t + 4u]), bitcast<vec4<f32>>(weights[t + 5u]),
        bitcast<vec4<f32>>(weights[t + 6u]), bitcast<vec4<f32>>(weights[t + 7u]));
}
//!else
fn four(a: u32, b: u32) -> vec4<f32> {
//!if F16
    return vec4<f32>(half_pair(a), half_pair(b));
//!else
    return bitcast<vec4<f32>>(vec4<u32>(a << 16u, a & 0xffff0000u, b << 16u, b & 0xffff0000u));
//!end
}

fn decode32(group: u32) -> array<vec4<f32>, 8> {
    let t = VALUES + group * 4u;
    let a = weights[t];
    let b = weights[t + 1u];
    let c = weights[t + 2u];
    let d = weights[t + 3u];
    return array<vec4<f32>, 8>(
        four(a.x, a.y), four(a.z, a.w), four(b.x, b.y), four(b.z, b.w),
        four(c.x, c.y), four(c.z, c.w), four(d.x, d.y), four(d.z, d.w));
}
//!end
