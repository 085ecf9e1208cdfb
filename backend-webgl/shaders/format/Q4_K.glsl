// Q4_K: (d * scale) * q - (dmin * minimum), scales and minima of 6 bits; a group is a sub-block of 256.
uint field(uvec4 t, int i) {
    return (word_of(t, 1 + (i >> 2)) >> (8 * (i & 3))) & 255u;
}

void decode32(
    int group, out vec4 w0, out vec4 w1, out vec4 w2, out vec4 w3, out vec4 w4, out vec4 w5, out vec4 w6, out vec4 w7
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
    float d = half_float(s.x & 0xffffu) * float(scale);
    float m = half_float(s.x >> 16) * float(minimum);
    uvec4 t = weight_texel(PLANE0 + group);
    w0 = d * nibbles(t.x) - m;
    w1 = d * nibbles(t.x >> 16) - m;
    w2 = d * nibbles(t.y) - m;
    w3 = d * nibbles(t.y >> 16) - m;
    w4 = d * nibbles(t.z) - m;
    w5 = d * nibbles(t.z >> 16) - m;
    w6 = d * nibbles(t.w) - m;
    w7 = d * nibbles(t.w >> 16) - m;
}
