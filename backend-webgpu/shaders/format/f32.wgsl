// F32: 8 texels a group.
fn decode32(group: u32) -> array<vec4<f32>, 8> {
    let t = PLANE0 + group * 8u;
    return array<vec4<f32>, 8>(
        bitcast<vec4<f32>>(weights[t]), bitcast<vec4<f32>>(weights[t + 1u]),
        bitcast<vec4<f32>>(weights[t + 2u]), bitcast<vec4<f32>>(weights[t + 3u]),
        bitcast<vec4<f32>>(weights[t + 4u]), bitcast<vec4<f32>>(weights[t + 5u]),
        bitcast<vec4<f32>>(weights[t + 6u]), bitcast<vec4<f32>>(weights[t + 7u]));
}
