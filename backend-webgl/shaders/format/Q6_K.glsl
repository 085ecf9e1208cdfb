// Q6_K: (d * scale) * (q - 32), a scale for each 16; a level is 1 + q / 64. A group is an eighth of a block of 256.
vec4 sixths(uint word, uint pairs) {
    uvec4 low = (uvec4(word) << uvec4(17, 13, 9, 5)) & 0x1e0000u;
    return level(low | ((uvec4(pairs) << uvec4(21, 19, 17, 15)) & 0x600000u));
}

float signed_byte(uint word, int i) {
    return float(int(word << (24 - 8 * i)) >> 24);
}

void levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
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
    q0 = sixths(t.x, p.x);
    q1 = sixths(t.x >> 16, p.x >> 8);
    q2 = sixths(t.y, p.x >> 16);
    q3 = sixths(t.y >> 16, p.x >> 24);
    q4 = sixths(t.z, p.y);
    q5 = sixths(t.z >> 16, p.y >> 8);
    q6 = sixths(t.w, p.y >> 16);
    q7 = sixths(t.w >> 16, p.y >> 24);
    affine = vec4(64.0, -96.0, 64.0, -96.0) * vec4(first, first, second, second);
}
