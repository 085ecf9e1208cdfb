// Q4_1: d * q + m.
void decode32(
    int group, out vec4 w0, out vec4 w1, out vec4 w2, out vec4 w3, out vec4 w4, out vec4 w5, out vec4 w6, out vec4 w7
) {
    uint scales = weight_word(PLANE1, group);
    float d = half_float(scales & 0xffffu);
    float m = half_float(scales >> 16);
    uvec4 t = weight_texel(PLANE0 + group);
    w0 = d * nibbles(t.x) + m;
    w1 = d * nibbles(t.x >> 16) + m;
    w2 = d * nibbles(t.y) + m;
    w3 = d * nibbles(t.y >> 16) + m;
    w4 = d * nibbles(t.z) + m;
    w5 = d * nibbles(t.z >> 16) + m;
    w6 = d * nibbles(t.w) + m;
    w7 = d * nibbles(t.w >> 16) + m;
}
