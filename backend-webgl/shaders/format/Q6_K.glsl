// Q6_K: (d * scale) * (q - 32), a scale for each 16; a group is an eighth of a block of 256.
vec4 upper(uint pairs) {
    return vec4((uvec4(pairs) >> uvec4(0, 2, 4, 6)) & 3u) * 16.0;
}

float signed_byte(uint word, int i) {
    return float(int(word << (24 - 8 * i)) >> 24);
}

void decode32(
    int group, out vec4 w0, out vec4 w1, out vec4 w2, out vec4 w3, out vec4 w4, out vec4 w5, out vec4 w6, out vec4 w7
) {
    int block = group >> 3;
    int sub = group & 7;
    uint scales = weight_word(PLANE2, 4 * block + (sub >> 1));
    float d = weight_half(PLANE3, block);
    float first = d * signed_byte(scales, 2 * (sub & 1));
    float second = d * signed_byte(scales, 2 * (sub & 1) + 1);
    uvec4 t = weight_texel(PLANE0 + group);
    uvec4 high = weight_texel(PLANE1 + (group >> 1));
    int half_at = 2 * (group & 1);
    uvec2 p = uvec2(high[half_at], high[half_at + 1]);
    w0 = first * (nibbles(t.x) + upper(p.x) - 32.0);
    w1 = first * (nibbles(t.x >> 16) + upper(p.x >> 8) - 32.0);
    w2 = first * (nibbles(t.y) + upper(p.x >> 16) - 32.0);
    w3 = first * (nibbles(t.y >> 16) + upper(p.x >> 24) - 32.0);
    w4 = second * (nibbles(t.z) + upper(p.y) - 32.0);
    w5 = second * (nibbles(t.z >> 16) + upper(p.y >> 8) - 32.0);
    w6 = second * (nibbles(t.w) + upper(p.y >> 16) - 32.0);
    w7 = second * (nibbles(t.w >> 16) + upper(p.y >> 24) - 32.0);
}
