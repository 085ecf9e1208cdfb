// Q4_K: (d * scale) * q - (dmin * minimum), scales and minima of 6 bits; a level is 1 + q / 16. A group is a
// sub-block of 256.
uint field(uvec4 t, int i) {
    return (word_of(t, 1 + (i >> 2)) >> (8 * (i & 3))) & 255u;
}

void levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    uvec4 s = weight_texel(PLANE1 + (group >> 3));
    int sub = group & 7;
    uint scale;
    uint minimum;
    if (sub < 4) {
        scale = field(s, sub) & 63u;
        minimum = field(s, sub + 4) & 63u;
    } else {
        uint low = field(s, sub + 4);
        scale = (low & 15u) | ((field(s, sub - 4) >> 6) << 4);
        minimum = (low >> 4) | ((field(s, sub) >> 6) << 4);
    }
    vec2 scales = half_pair(s.x) * vec2(scale, minimum);
    uvec4 t = weight_texel(PLANE0 + group);
    q0 = nibbles(t.x);
    q1 = nibbles(t.x >> 16);
    q2 = nibbles(t.y);
    q3 = nibbles(t.y >> 16);
    q4 = nibbles(t.z);
    q5 = nibbles(t.z >> 16);
    q6 = nibbles(t.w);
    q7 = nibbles(t.w >> 16);
    affine = vec4(16.0 * scales.x, -scales.y - 16.0 * scales.x, 0.0, 0.0).xyxy;
}
