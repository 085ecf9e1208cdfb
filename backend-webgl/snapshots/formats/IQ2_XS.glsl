
uint a_bytes_from(int plane, int at) {
    return weight_word(plane, at >> 2) >> (8 * (at & 3));
}

uvec4 a_fields(int group) {
    int block = plane0_a + 4 * (group >> 3);
    int own = group & 7;
    uvec4 texel = weight_texel(block + (own >> 1));
    int half_at = 2 * (own & 1);
    uvec2 indices = uvec2(word_of(texel, half_at), word_of(texel, half_at + 1));
    uvec4 f = uvec4(indices, indices.y, 0u);
    return f;
}

vec2 a_scales(int group, uvec4 f) {
    int block = group >> 3;
    float d = weight_half(plane2_a, block);
    uvec2 s = (uvec2(a_bytes_from(plane1_a, group)) >> uvec2(0, 4)) & 15u;
    return d * 0.25 * (0.5 + vec2(s));
}

uint a_index_of(uvec4 f, int i) {
    return (word_of(f, i >> 1) >> (16 * (i & 1))) & 511u;
}

uint a_entry(uint index) {
    return word_of(codebook_iq2_xs[index >> 3], int((index >> 1) & 3u)) >> (16u * (index & 1u));
}

uint a_signs(uvec4 f, int i) {
    uint seven = (word_of(f, i >> 1) >> (16 * (i & 1) + 9)) & 127u;
    uint parity = seven ^ (seven >> 4);
    return seven | (((0x6996u >> (parity & 15u)) & 1u) << 7);
}

vec4 a_four(uint codes, uint bits) {
    uvec4 negative = uvec4(0u) - ((uvec4(bits) >> uvec4(0, 1, 2, 3)) & 1u);
    uvec4 code = uvec4(codes) >> uvec4(0, 2, 4, 6);
    uvec4 table = 0x08192b00u ^ ((0x08192b00u ^ 0xf8e7d500u) & negative);
    ivec4 level = ivec4(table << (8u * (code & 3u))) >> 24;
    return vec4(level);
}

void a_eight(uvec4 f, int i, out vec4 first, out vec4 last) {
    uint bits = a_signs(f, i);
    uint codes = a_entry(a_index_of(f, i));
    first = a_four(codes, bits);
    last = a_four(codes >> 8, bits >> 4);
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
