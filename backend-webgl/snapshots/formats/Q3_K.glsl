vec4 a_scales(int group) {
    int word = 3 * (group >> 3);
    int sub = 2 * (group & 7);
    uint low = weight_word(plane2_a, word + ((sub >> 2) & 1)) >> (8 * (sub & 3) + 4 * (sub >> 3));
    uint high = weight_word(plane2_a, word + 2) >> (8 * (sub & 3) + 2 * (sub >> 2));
    uvec2 six = (uvec2(low, low >> 8) & 15u) | ((uvec2(high, high >> 8) & 3u) << 4);
    vec2 both = weight_half(plane3_a, group >> 3) * (vec2(six) - 32.0);
    return vec4(both.x, 0.0, both.y, 0.0);
}

vec4 a_eighths(uint word, uint bits) {
    uvec4 low = (uvec4(word) << uvec4(20, 18, 16, 14)) & 0x300000u;
    return level(low | ((uvec4(bits) << uvec4(22, 21, 20, 19)) & 0x400000u));
}

void a_levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    vec4 s = a_scales(group);
    affine = vec4(8.0, -12.0, 8.0, -12.0) * s.xxzz;
    uvec4 two = weight_texel(plane0_a + (group >> 1));
    int half_at = 2 * (group & 1);
    uvec2 t = uvec2(two[half_at], two[half_at + 1]);
    uint bits = weight_word(plane1_a, group);
    q0 = a_eighths(t.x, bits);
    q1 = a_eighths(t.x >> 8, bits >> 4);
    q2 = a_eighths(t.x >> 16, bits >> 8);
    q3 = a_eighths(t.x >> 24, bits >> 12);
    q4 = a_eighths(t.y, bits >> 16);
    q5 = a_eighths(t.y >> 8, bits >> 20);
    q6 = a_eighths(t.y >> 16, bits >> 24);
    q7 = a_eighths(t.y >> 24, bits >> 28);
}
