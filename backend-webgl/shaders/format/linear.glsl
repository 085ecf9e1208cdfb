// Linear blocks: x = scale * (q - ZERO), with MINIMA x = scale * q + minimum; a level is 1 + q / STEPS, of signed bytes
// 1 + (q + 128) / 256.
//!if BITS2
// 1 + q / 4 for 4 pairs of bits.
vec4 fourths(uint word) {
    return level((uvec4(word) << uvec4(21, 19, 17, 15)) & 0x600000u);
}

//!end
//!if BITS1
// 1 + q / 2 for 4 bits: with one that stands for 2, a quarter of it.
vec4 halves(uint bits) {
    return level((uvec4(bits) << uvec4(22, 21, 20, 19)) & 0x400000u);
}

//!end
//!if BITS3
// 1 + q / 8 for 4 pairs of bits with a third bit.
vec4 eighths(uint word, uint bits) {
    uvec4 low = (uvec4(word) << uvec4(20, 18, 16, 14)) & 0x300000u;
    return level(low | ((uvec4(bits) << uvec4(22, 21, 20, 19)) & 0x400000u));
}

//!end
//!if BITS6
vec4 sixths(uint word, uint pairs) {
    uvec4 low = (uvec4(word) << uvec4(17, 13, 9, 5)) & 0x1e0000u;
    return level(low | ((uvec4(pairs) << uvec4(21, 19, 17, 15)) & 0x600000u));
}

//!end
void levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    vec4 s = scales(group);
    affine = vec4(STEPS, -BASE, STEPS, -BASE) * s.xxzz;
//!if MINIMA
    affine.yw += s.yw;
//!end
//!if BITS8
    uvec4 t = weight_texel(LOW + 2 * group);
    q0 = signed_bytes(t.x);
    q1 = signed_bytes(t.y);
    q2 = signed_bytes(t.z);
    q3 = signed_bytes(t.w);
    t = weight_texel(LOW + 2 * group + 1);
    q4 = signed_bytes(t.x);
    q5 = signed_bytes(t.y);
    q6 = signed_bytes(t.z);
    q7 = signed_bytes(t.w);
//!end
//!if BITS1
    uint bits = weight_word(LOW, group);
    q0 = halves(bits);
    q1 = halves(bits >> 4);
    q2 = halves(bits >> 8);
    q3 = halves(bits >> 12);
    q4 = halves(bits >> 16);
    q5 = halves(bits >> 20);
    q6 = halves(bits >> 24);
    q7 = halves(bits >> 28);
//!end
//!if BITS2 || BITS3
    uvec4 two = weight_texel(LOW + (group >> 1));
    int half_at = 2 * (group & 1);
    uvec2 t = uvec2(two[half_at], two[half_at + 1]);
//!end
//!if BITS2
    q0 = fourths(t.x);
    q1 = fourths(t.x >> 8);
    q2 = fourths(t.x >> 16);
    q3 = fourths(t.x >> 24);
    q4 = fourths(t.y);
    q5 = fourths(t.y >> 8);
    q6 = fourths(t.y >> 16);
    q7 = fourths(t.y >> 24);
//!end
//!if BITS3
    uint bits = weight_word(HIGH, group);
    q0 = eighths(t.x, bits);
    q1 = eighths(t.x >> 8, bits >> 4);
    q2 = eighths(t.x >> 16, bits >> 8);
    q3 = eighths(t.x >> 24, bits >> 12);
    q4 = eighths(t.y, bits >> 16);
    q5 = eighths(t.y >> 8, bits >> 20);
    q6 = eighths(t.y >> 16, bits >> 24);
    q7 = eighths(t.y >> 24, bits >> 28);
//!end
//!if BITS4 || BITS5 || BITS6
    uvec4 t = weight_texel(LOW + group);
//!end
//!if BITS4
    q0 = nibbles(t.x);
    q1 = nibbles(t.x >> 16);
    q2 = nibbles(t.y);
    q3 = nibbles(t.y >> 16);
    q4 = nibbles(t.z);
    q5 = nibbles(t.z >> 16);
    q6 = nibbles(t.w);
    q7 = nibbles(t.w >> 16);
//!end
//!if BITS5
    uint bits = weight_word(HIGH, group);
    q0 = fifths(t.x, bits);
    q1 = fifths(t.x >> 16, bits >> 4);
    q2 = fifths(t.y, bits >> 8);
    q3 = fifths(t.y >> 16, bits >> 12);
    q4 = fifths(t.z, bits >> 16);
    q5 = fifths(t.z >> 16, bits >> 20);
    q6 = fifths(t.w, bits >> 24);
    q7 = fifths(t.w >> 16, bits >> 28);
//!end
//!if BITS6
    uvec4 high = weight_texel(HIGH + (group >> 1));
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
//!end
}
