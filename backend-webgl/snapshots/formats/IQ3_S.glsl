
uint a_bytes_from(int plane, int at) {
    return weight_word(plane, at >> 2) >> (8 * (at & 3));
}

uvec4 a_fields(int group) {
    int block = plane0_a + 6 * (group >> 3);
    int own = group & 7;
    uvec4 texel = weight_texel(block + (own >> 1));
    int half_at = 2 * (own & 1);
    uvec2 indices = uvec2(word_of(texel, half_at), word_of(texel, half_at + 1));
    uvec4 f = uvec4(indices, indices.y, 0u);
    f.z = weight_word(block + 4, own);
    f.w = a_bytes_from(plane1_a, 1 * group);
    return f;
}

vec2 a_scales(int group, uvec4 f) {
    int block = group >> 3;
    float d = weight_half(plane3_a, block);
    uvec2 s = uvec2((a_bytes_from(plane2_a, group >> 1) >> (4 * (group & 1))) & 15u);
    return d * 2.0 * (0.5 + vec2(s));
}

uint a_index_of(uvec4 f, int i) {
    uint index = (word_of(f, i >> 2) >> (8 * (i & 3))) & 255u;
    index |= ((f.w >> (1 * i)) & 1u) << 8;
    return index;
}

uint a_entry(uint index) {
    return word_of(codebook_iq3_s[index >> 3], int((index >> 1) & 3u)) >> (16u * (index & 1u));
}

uint a_signs(uvec4 f, int i) {
    return f.z >> (8 * i);
}

vec4 a_four(uint codes, uint bits) {
    uvec4 negative = uvec4(0u) - ((uvec4(bits) >> uvec4(0, 1, 2, 3)) & 1u);
    uvec4 code = uvec4(codes) >> uvec4(0, 4, 8, 12);
    uvec4 upper = uvec4(0u) - ((code >> 2) & 1u);
    uvec4 table = 0x01030507u ^ ((0x01030507u ^ 0x090b0d0fu) & upper);
    ivec4 level = ivec4(table << (8u * (code & 3u))) >> 24;
    level = (level ^ ivec4(negative)) - ivec4(negative);
    return vec4(level);
}

void a_eight(uvec4 f, int i, out vec4 first, out vec4 last) {
    uint bits = a_signs(f, i);
    first = a_four(a_entry(a_index_of(f, 2 * i)), bits);
    last = a_four(a_entry(a_index_of(f, 2 * i + 1)), bits >> 4);
}

void a_levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    uvec4 f = a_fields(group);
    vec2 s = a_scales(group, f);
    affine = vec4(s.x, 0.0, s.y, 0.0);
    a_eight(f, 0, q0, q1);
    a_eight(f, 1, q2, q3);
    a_eight(f, 2, q4, q5);
    a_eight(f, 3, q6, q7);
}
