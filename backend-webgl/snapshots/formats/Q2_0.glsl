// What the codes of a group are multiplied by, and what is added then: of its first half in x and y, of the second one
// in z and w.
vec4 a_scales(int group) {
    // An f16 for each block.
    float d = weight_half(plane1_a, group >> 1);
    return vec4(d, 0.0, d, 0.0);
}

// Linear blocks: x = scale * (q - 1.0), with MINIMA x = scale * q + minimum; a level is 1 + q / 4.0, of signed bytes
// 1 + (q + 128) / 256.
// 1 + q / 4 for 4 pairs of bits.
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
