vec4 a_scales(int group) {
    float d = weight_half(plane1_a, group >> 3);
    return vec4(d, 0.0, d, 0.0);
}

vec4 a_fourths(uint word) {
    return level((uvec4(word) << uvec4(21, 19, 17, 15)) & 0x600000u);
}

void a_levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    vec4 s = a_scales(group);
    affine = vec4(4.0, -5.0, 4.0, -5.0) * s.xxzz;
    uvec4 two = weight_texel(plane0_a + (group >> 1));
    int half_at = 2 * (group & 1);
    uvec2 t = uvec2(two[half_at], two[half_at + 1]);
    q0 = a_fourths(t.x);
    q1 = a_fourths(t.x >> 8);
    q2 = a_fourths(t.x >> 16);
    q3 = a_fourths(t.x >> 24);
    q4 = a_fourths(t.y);
    q5 = a_fourths(t.y >> 8);
    q6 = a_fourths(t.y >> 16);
    q7 = a_fourths(t.y >> 24);
}
