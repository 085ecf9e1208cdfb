vec4 a_scales(int group) {
    uint head = weight_word(plane1_a, 2 * (group >> 3));
    uint lower = weight_word(plane1_a, 2 * (group >> 3) + 1);
    int sub = group & 7;
    uint six = ((lower >> (4 * sub)) & 15u) | (((head >> (16 + 2 * sub)) & 3u) << 4);
    float d = half_float(head & 0xffffu) * (float(six) - 32.0);
    return vec4(d, 0.0, d, 0.0);
}

vec4 a_levels(uint word) {
    uvec4 q = (uvec4(word) >> uvec4(0, 4, 8, 12)) & 15u;
    uvec4 odd = uvec4(0u) - ((q >> 2) & 1u);
    uvec4 upper = uvec4(0u) - (q >> 3);
    uvec4 first = 0xbfad9881u ^ ((0xbfad9881u ^ 0xf6eaddcfu) & odd);
    uvec4 last = 0x26190d01u ^ ((0x26190d01u ^ 0x71594535u) & odd);
    uvec4 four = first ^ ((first ^ last) & upper);
    return vec4(ivec4(four << (24u - 8u * (q & 3u))) >> 24);
}

void a_levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    affine = a_scales(group) * vec4(1.0, 0.0, 1.0, 0.0);
    uvec4 t = weight_texel(plane0_a + group);
    q0 = a_levels(t.x);
    q1 = a_levels(t.x >> 16);
    q2 = a_levels(t.y);
    q3 = a_levels(t.y >> 16);
    q4 = a_levels(t.z);
    q5 = a_levels(t.z >> 16);
    q6 = a_levels(t.w);
    q7 = a_levels(t.w >> 16);
}
