// Tables of 16 levels: scale * level, which codes of 4 bits stand for. LEVEL0 .. LEVEL3 are the levels, a signed byte
// each.
vec4 levels(uint word) {
    uvec4 q = (uvec4(word) >> uvec4(0, 4, 8, 12)) & 15u;
    // The word of four levels, then the level in it. Bits 2 and 3 as masks choose it.
    uvec4 odd = uvec4(0u) - ((q >> 2) & 1u);
    uvec4 upper = uvec4(0u) - (q >> 3);
    uvec4 first = LEVEL0 ^ ((LEVEL0 ^ LEVEL1) & odd);
    uvec4 last = LEVEL2 ^ ((LEVEL2 ^ LEVEL3) & odd);
    uvec4 four = first ^ ((first ^ last) & upper);
    return vec4(ivec4(four << (24u - 8u * (q & 3u))) >> 24);
}

void levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    affine = scales(group) * vec4(1.0, 0.0, 1.0, 0.0);
    uvec4 t = weight_texel(CODES + group);
    q0 = levels(t.x);
    q1 = levels(t.x >> 16);
    q2 = levels(t.y);
    q3 = levels(t.y >> 16);
    q4 = levels(t.z);
    q5 = levels(t.z >> 16);
    q6 = levels(t.w);
    q7 = levels(t.w >> 16);
}
