// Grids: a group is four runs of eight neighbours, whose codes are an entry of a codebook, with FOURS two entries. A
// code and its sign stand for a level; LEVEL0 and LEVEL1 are the first eight levels, a signed byte each, the first one
// in the highest byte.

// What begins with a byte of a plane.
uint bytes_from(int plane, int at) {
    return weight_word(plane, at >> 2) >> (8 * (at & 3));
}

// What a group has: its indices in x and y; the word that has its signs, if one has, in z; the bits of indices above
// the lower 8 in w. The plane has a block's indices and then its words of signs, if those lie apart.
uvec4 fields(int group) {
    int block = WORDS + SPAN * (group >> 3);
    int own = group & 7;
//!if NARROW
    uvec2 indices = uvec2(weight_word(block, own), 0u);
//!else
    uvec4 texel = weight_texel(block + (own >> 1));
    int half_at = 2 * (own & 1);
    uvec2 indices = uvec2(word_of(texel, half_at), word_of(texel, half_at + 1));
//!end
    uvec4 f = uvec4(indices, indices.y, 0u);
//!if SIGNS_APART
    f.z = weight_word(block + SIGNS, own);
//!end
//!if EXTENDED
    f.w = bytes_from(HIGH, HIGH_BYTES * group);
//!end
    return f;
}

// What the levels of both halves of a group are multiplied by.
vec2 scales(int group, uvec4 f) {
//!if STEPS_BELOW_FACTOR
    // Eight groups have four words of 16 bits: in each, 4 bits of the factor above the steps of four halves.
    int first = 2 * (group >> 3);
    uvec2 words = uvec2(weight_word(SCALES, first), weight_word(SCALES, first + 1));
    uvec2 nibbles = (words >> 12) & 0xf000fu;
    uvec2 pairs = (nibbles | (nibbles >> 12)) & 255u;
    float d = half_float(pairs.x | (pairs.y << 8));
    uint own = bytes_from(SCALES, group & ~1) >> (6 * (group & 1));
    uvec2 s = (uvec2(own) >> uvec2(0, 3)) & 7u;
//!else
    int block = group >> 3;
    float d = weight_half(FACTORS, block);
//!end
//!if STEP_ABOVE_SIGNS
    uvec2 s = uvec2(f.z >> 28);
//!end
//!if STEP_OF_HALF
    uvec2 s = (uvec2(bytes_from(SCALES, group)) >> uvec2(0, 4)) & 15u;
//!end
//!if STEP_ABOVE_INDICES
    uvec2 s = uvec2((f.w >> 12) & 7u);
//!end
//!if STEP_OF_GROUP
    uvec2 s = uvec2((bytes_from(SCALES, group >> 1) >> (4 * (group & 1))) & 15u);
//!end
    return d * UNIT * (0.5 + vec2(s));
}

// The index of entry i.
uint index_of(uvec4 f, int i) {
//!if NINES
    return (word_of(f, i >> 1) >> (16 * (i & 1))) & 511u;
//!else
    uint index = (word_of(f, i >> 2) >> (8 * (i & 3))) & 255u;
//!if EXTENDED
    index |= ((f.w >> (HIGH_PITCH * i)) & HIGH_MASK) << 8;
//!end
    return index;
//!end
}

// The entry of an index: codes, the first in the lowest bits.
uint entry(uint index) {
    return word_of(CODEBOOK[index >> 3], int((index >> 1) & 3u)) >> (16u * (index & 1u));
}

// The signs of run i, a bit each.
uint signs(uvec4 f, int i) {
//!if EIGHTS
    return f.z >> (8 * i);
//!end
//!if ALIKE
    return 255u * ((f.w >> (SIGN_BIT + SIGN_PITCH * i)) & 1u);
//!end
//!if SEVENS
//!if NINES
    uint seven = (word_of(f, i >> 1) >> (16 * (i & 1) + 9)) & 127u;
//!else
    uint seven = (f.z >> (7 * i)) & 127u;
//!end
    // The eighth makes the number of bits that are set even.
    uint parity = seven ^ (seven >> 4);
    return seven | (((0x6996u >> (parity & 15u)) & 1u) << 7);
//!end
}

// The levels of four codes with their signs.
vec4 four(uint codes, uint bits) {
    uvec4 negative = uvec4(0u) - ((uvec4(bits) >> uvec4(0, 1, 2, 3)) & 1u);
//!if FOURS
    uvec4 code = uvec4(codes) >> uvec4(0, 4, 8, 12);
    uvec4 upper = uvec4(0u) - ((code >> 2) & 1u);
    uvec4 table = LEVEL0 ^ ((LEVEL0 ^ LEVEL1) & upper);
//!else
    uvec4 code = uvec4(codes) >> uvec4(0, 2, 4, 6);
    uvec4 table = LEVEL0 ^ ((LEVEL0 ^ LEVEL1) & negative);
//!end
    ivec4 level = ivec4(table << (8u * (code & 3u))) >> 24;
//!if FOURS
    // As a mask and an integer -1 the sign negates an integer.
    level = (level ^ ivec4(negative)) - ivec4(negative);
//!end
    return vec4(level);
}

// The levels of run i.
void eight(uvec4 f, int i, out vec4 first, out vec4 last) {
    uint bits = signs(f, i);
//!if FOURS
    first = four(entry(index_of(f, 2 * i)), bits);
    last = four(entry(index_of(f, 2 * i + 1)), bits >> 4);
//!else
    uint codes = entry(index_of(f, i));
    first = four(codes, bits);
    last = four(codes >> 8, bits >> 4);
//!end
}
