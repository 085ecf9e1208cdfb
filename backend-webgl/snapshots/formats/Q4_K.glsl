uint a_field(uvec4 t, int i) {
    return (word_of(t, 1 + (i >> 2)) >> (8 * (i & 3))) & 255u;
}

vec4 a_scales(int group) {
    uvec4 head = weight_texel(plane1_a + (group >> 3));
    int sub = group & 7;
    uint scale;
    uint minimum;
    if (sub < 4) {
        scale = a_field(head, sub) & 63u;
        minimum = a_field(head, sub + 4) & 63u;
    } else {
        uint low = a_field(head, sub + 4);
        scale = (low & 15u) | ((a_field(head, sub - 4) >> 6) << 4);
        minimum = (low >> 4) | ((a_field(head, sub) >> 6) << 4);
    }
    vec2 both = half_pair(head.x) * vec2(scale, minimum);
    return vec4(both.x, -both.y, both.x, -both.y);
}

void a_levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    vec4 s = a_scales(group);
    affine = vec4(16.0, -16.0, 16.0, -16.0) * s.xxzz;
    affine.yw += s.yw;
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
