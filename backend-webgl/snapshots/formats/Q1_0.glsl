vec4 a_scales(int group) {
    float d = weight_half(plane1_a, group >> 2);
    return vec4(d, 0.0, d, 0.0);
}

vec4 a_halves(uint bits) {
    return level((uvec4(bits) << uvec4(22, 21, 20, 19)) & 0x400000u);
}

void a_levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    vec4 s = a_scales(group);
    affine = vec4(4.0, -5.0, 4.0, -5.0) * s.xxzz;
    uint bits = weight_word(plane0_a, group);
    q0 = a_halves(bits);
    q1 = a_halves(bits >> 4);
    q2 = a_halves(bits >> 8);
    q3 = a_halves(bits >> 12);
    q4 = a_halves(bits >> 16);
    q5 = a_halves(bits >> 20);
    q6 = a_halves(bits >> 24);
    q7 = a_halves(bits >> 28);
}
