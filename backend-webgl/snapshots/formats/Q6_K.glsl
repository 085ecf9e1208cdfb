float a_signed_byte(uint word, int i) {
    return float(int(word << (24 - 8 * i)) >> 24);
}

vec4 a_scales(int group) {
    uint pair = weight_word(plane2_a, group >> 1);
    float d = weight_half(plane3_a, group >> 3);
    int first = 2 * (group & 1);
    return vec4(d * a_signed_byte(pair, first), 0.0, d * a_signed_byte(pair, first + 1), 0.0);
}

vec4 a_sixths(uint word, uint pairs) {
    uvec4 low = (uvec4(word) << uvec4(17, 13, 9, 5)) & 0x1e0000u;
    return level(low | ((uvec4(pairs) << uvec4(21, 19, 17, 15)) & 0x600000u));
}

void a_levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    vec4 s = a_scales(group);
    affine = vec4(64.0, -96.0, 64.0, -96.0) * s.xxzz;
    uvec4 t = weight_texel(plane0_a + group);
    uvec4 high = weight_texel(plane1_a + (group >> 1));
    int half_at = 2 * (group & 1);
    uvec2 p = uvec2(high[half_at], high[half_at + 1]);
    q0 = a_sixths(t.x, p.x);
    q1 = a_sixths(t.x >> 16, p.x >> 8);
    q2 = a_sixths(t.y, p.x >> 16);
    q3 = a_sixths(t.y >> 16, p.x >> 24);
    q4 = a_sixths(t.z, p.y);
    q5 = a_sixths(t.z >> 16, p.y >> 8);
    q6 = a_sixths(t.w, p.y >> 16);
    q7 = a_sixths(t.w >> 16, p.y >> 24);
}
