
uint a_bytes_from(int plane, int at) {
    return weight_word(plane, at >> 2) >> (8 * (at & 3));
}

uvec4 a_fields(int group) {
    int block = plane0_a + 2 * (group >> 3);
    int own = group & 7;
    uvec2 indices = uvec2(weight_word(block, own), 0u);
    uvec4 f = uvec4(indices, indices.y, 0u);
    f.w = a_bytes_from(plane1_a, 2 * group);
    return f;
}

vec2 a_scales(int group, uvec4 f) {
    int first = 2 * (group >> 3);
    uvec2 words = uvec2(weight_word(plane2_a, first), weight_word(plane2_a, first + 1));
    uvec2 nibbles = (words >> 12) & 0xf000fu;
    uvec2 pairs = (nibbles | (nibbles >> 12)) & 255u;
    float d = half_float(pairs.x | (pairs.y << 8));
    uint own = a_bytes_from(plane2_a, group & ~1) >> (6 * (group & 1));
    uvec2 s = (uvec2(own) >> uvec2(0, 3)) & 7u;
    return d * 0.25 * (0.5 + vec2(s));
}

uint a_index_of(uvec4 f, int i) {
    uint index = (word_of(f, i >> 2) >> (8 * (i & 3))) & 255u;
    index |= ((f.w >> (4 * i)) & 7u) << 8;
    return index;
}

uint a_entry(uint index) {
    return word_of(codebook_iq1_s[index >> 3], int((index >> 1) & 3u)) >> (16u * (index & 1u));
}

uint a_signs(uvec4 f, int i) {
    return 255u * ((f.w >> (3 + 4 * i)) & 1u);
}

vec4 a_four(uint codes, uint bits) {
    uvec4 negative = uvec4(0u) - ((uvec4(bits) >> uvec4(0, 1, 2, 3)) & 1u);
    uvec4 code = uvec4(codes) >> uvec4(0, 2, 4, 6);
    uvec4 table = 0xf9010900u ^ ((0xf9010900u ^ 0xf7ff0700u) & negative);
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
