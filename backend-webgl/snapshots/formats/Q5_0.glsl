vec4 a_scales(int group) {
    float d = weight_half(plane2_a, group >> 0);
    return vec4(d, 0.0, d, 0.0);
}

void a_levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    vec4 s = a_scales(group);
    affine = vec4(32.0, -48.0, 32.0, -48.0) * s.xxzz;
    uvec4 t = weight_texel(plane0_a + group);
    uint bits = weight_word(plane1_a, group);
    q0 = fifths(t.x, bits);
    q1 = fifths(t.x >> 16, bits >> 4);
    q2 = fifths(t.y, bits >> 8);
    q3 = fifths(t.y >> 16, bits >> 12);
    q4 = fifths(t.z, bits >> 16);
    q5 = fifths(t.z >> 16, bits >> 20);
    q6 = fifths(t.w, bits >> 24);
    q7 = fifths(t.w >> 16, bits >> 28);
}
