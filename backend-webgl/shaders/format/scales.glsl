// What the codes of a group are multiplied by, and what is added then: of its first half in x and y, of the second one
// in z and w.
//!if SIXES
uint field(uvec4 t, int i) {
    return (word_of(t, 1 + (i >> 2)) >> (8 * (i & 3))) & 255u;
}

//!end
//!if MINIFLOATS
// Half of a float with 4 bits of exponent and 3 of fraction; all ones stand for 0.
float minifloat(uint byte) {
    uint exponent = (byte >> 3) & 15u;
    float small = float(byte & 7u) / 1024.0;
    float value = exponent == 0u ? small : uintBitsToFloat(((exponent + 119u) << 23) | ((byte & 7u) << 20));
    return byte == 127u ? 0.0 : value;
}

//!end
//!if BYTES
float signed_byte(uint word, int i) {
    return float(int(word << (24 - 8 * i)) >> 24);
}

//!end
vec4 scales(int group) {
//!if ONE
    // An f16 for each block.
    float d = weight_half(SCALES, group >> GROUP_SHIFT);
    return vec4(d, 0.0, d, 0.0);
//!end
//!if TWO
    // Two f16 for each group: scale and minimum.
    return half_pair(weight_word(SCALES, group)).xyxy;
//!end
//!if SIXES
    // A texel for 8 groups: two f16, and 6 bits for each scale and minimum. The last four groups have their high bits
    // in the bytes of the first four.
    uvec4 head = weight_texel(SCALES + (group >> 3));
    int sub = group & 7;
    uint scale;
    uint minimum;
    if (sub < 4) {
        scale = field(head, sub) & 63u;
        minimum = field(head, sub + 4) & 63u;
    } else {
        uint low = field(head, sub + 4);
        scale = (low & 15u) | ((field(head, sub - 4) >> 6) << 4);
        minimum = (low >> 4) | ((field(head, sub) >> 6) << 4);
    }
    vec2 both = half_pair(head.x) * vec2(scale, minimum);
    return vec4(both.x, -both.y, both.x, -both.y);
//!end
//!if BYTES
    // A texel of signed bytes for 8 groups, two for each, and an f16 for all of them.
    uint pair = weight_word(SCALES, group >> 1);
    float d = weight_half(FACTORS, group >> 3);
    int first = 2 * (group & 1);
    return vec4(d * signed_byte(pair, first), 0.0, d * signed_byte(pair, first + 1), 0.0);
//!end
//!if NIBBLES
    // A texel of bytes for 8 groups, two for each, with a scale below and a minimum above; and two f16 for all of them.
    uint pair = weight_word(SCALES, group >> 1) >> (16 * (group & 1));
    vec2 d = half_pair(weight_word(FACTORS, group >> 3));
    vec4 both = vec4((uvec4(pair) >> uvec4(0, 4, 8, 12)) & 15u);
    return both * vec4(d.x, -d.y, d.x, -d.y);
//!end
//!if SIX_BITS_16
    // Three words for 8 groups: lower nibbles of sixteen scales, the last eight above the others; then their upper
    // pairs, of each fourth one in a byte. Scales are 32 less. An f16 for all of them.
    int word = 3 * (group >> 3);
    int sub = 2 * (group & 7);
    uint low = weight_word(SCALES, word + ((sub >> 2) & 1)) >> (8 * (sub & 3) + 4 * (sub >> 3));
    uint high = weight_word(SCALES, word + 2) >> (8 * (sub & 3) + 2 * (sub >> 2));
    uvec2 six = (uvec2(low, low >> 8) & 15u) | ((uvec2(high, high >> 8) & 3u) << 4);
    vec2 both = weight_half(FACTORS, group >> 3) * (vec2(six) - 32.0);
    return vec4(both.x, 0.0, both.y, 0.0);
//!end
//!if SIX_BITS_32
    // Two words for 8 groups: an f16 and the upper pairs of bits; then the lower nibbles. Scales are 32 less.
    uint head = weight_word(SCALES, 2 * (group >> 3));
    uint lower = weight_word(SCALES, 2 * (group >> 3) + 1);
    int sub = group & 7;
    uint six = ((lower >> (4 * sub)) & 15u) | (((head >> (16 + 2 * sub)) & 3u) << 4);
    float d = half_float(head & 0xffffu) * (float(six) - 32.0);
    return vec4(d, 0.0, d, 0.0);
//!end
//!if EXPONENT
    // A byte for each group: the exponent of a power of two, more by 128.
    uint e = (weight_word(SCALES, group >> 2) >> (8 * (group & 3))) & 255u;
    float d = uintBitsToFloat(e < 2u ? 0x00200000u << e : (e - 1u) << 23);
    return vec4(d, 0.0, d, 0.0);
//!end
//!if MINIFLOATS
    // Two bytes for each group.
    uint pair = weight_word(SCALES, group >> 1) >> (16 * (group & 1));
    return vec4(minifloat(pair & 255u), 0.0, minifloat((pair >> 8) & 255u), 0.0);
//!end
}
