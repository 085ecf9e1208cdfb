vec4 a_scales(int group) {
    float d = weight_half(plane1_a, group >> 0);
    return vec4(d, 0.0, d, 0.0);
}

void a_levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    vec4 s = a_scales(group);
    affine = vec4(16.0, -24.0, 16.0, -24.0) * s.xxzz;
    uvec4 t = weight_texel(plane0_a + group);
    q0 = nibbles(t.x);
    q1 = nibbles(t.x >> 16);
    q2 = nibbles(t.y);
    q3 = nibbles(t.y >> 16);
    q4 = nibbles(t.z);
    q5 = nibbles(t.z >> 16);
    q6 = nibbles(t.w);
    q7 = nibbles(t.w >> 16);
}
