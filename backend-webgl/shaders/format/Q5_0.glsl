// Q5_0: d * (q - 16).
void decode32(
    int group, out vec4 w0, out vec4 w1, out vec4 w2, out vec4 w3, out vec4 w4, out vec4 w5, out vec4 w6, out vec4 w7
) {
    float d = weight_half(PLANE2, group);
    uint bits = weight_word(PLANE1, group);
    uvec4 t = weight_texel(PLANE0 + group);
    w0 = d * (nibbles(t.x) + fifths(bits) - 16.0);
    w1 = d * (nibbles(t.x >> 16) + fifths(bits >> 4) - 16.0);
    w2 = d * (nibbles(t.y) + fifths(bits >> 8) - 16.0);
    w3 = d * (nibbles(t.y >> 16) + fifths(bits >> 12) - 16.0);
    w4 = d * (nibbles(t.z) + fifths(bits >> 16) - 16.0);
    w5 = d * (nibbles(t.z >> 16) + fifths(bits >> 20) - 16.0);
    w6 = d * (nibbles(t.w) + fifths(bits >> 24) - 16.0);
    w7 = d * (nibbles(t.w >> 16) + fifths(bits >> 28) - 16.0);
}
