vec4 a_scales(int group) {
    float d = weight_half(plane1_a, group >> 0);
    return vec4(d, 0.0, d, 0.0);
}

void a_levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    vec4 s = a_scales(group);
    affine = vec4(256.0, -384.0, 256.0, -384.0) * s.xxzz;
    uvec4 t = weight_texel(plane0_a + 2 * group);
    q0 = signed_bytes(t.x);
    q1 = signed_bytes(t.y);
    q2 = signed_bytes(t.z);
    q3 = signed_bytes(t.w);
    t = weight_texel(plane0_a + 2 * group + 1);
    q4 = signed_bytes(t.x);
    q5 = signed_bytes(t.y);
    q6 = signed_bytes(t.z);
    q7 = signed_bytes(t.w);
}
