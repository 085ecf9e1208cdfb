// States in levels: blocks of 32 with a scale, and with MIN the number that level 0 is. A row of ROW texels has the
// levels of all its blocks, WORDS words each; from texel SCALES on their scales; then their smallest numbers. Levels
// are bytes with BYTES, else nibbles; with FIFTHS the fifth bits are in a word of their own.
//!if WRITER
// A number as a half would hold it.
float half_of(float value) {
    float size = abs(value);
    uint bits = floatBitsToUint(size);
    uint near = (bits + 0xfffu + ((bits >> 13u) & 1u)) & 0xffffe000u;
    float rounded = uintBitsToFloat(near >= 0x47800000u ? 0x7f800000u : near);
    if (size < 6.1035156e-5) rounded = floor(size * 16777216.0 + 0.5) / 16777216.0;
    return value < 0.0 ? -rounded : rounded;
}

// What the levels of a block are to be multiplied with and added to. False if a number is not finite.
bool range(int row, int block, out float scale, out float least) {
    uint most = 0u;
    float farthest = 0.0;
    float low = QUAD(row, 8 * block).x;
    float high = low;
    int end = 8 * block + 8;
    for (int c4 = 8 * block; c4 < end; c4++) {
        vec4 four = QUAD(row, c4);
        // Magnitudes are ordered as their bits are, and those of NaN and infinity come last.
        uvec4 sizes = floatBitsToUint(four) & 0x7fffffffu;
        if (sizes.x > most) farthest = four.x;
        most = max(most, sizes.x);
        if (sizes.y > most) farthest = four.y;
        most = max(most, sizes.y);
        if (sizes.z > most) farthest = four.z;
        most = max(most, sizes.z);
        if (sizes.w > most) farthest = four.w;
        most = max(most, sizes.w);
        low = min(low, min(min(four.x, four.y), min(four.z, four.w)));
        high = max(high, max(max(four.x, four.y), max(four.z, four.w)));
    }
    least = 0.0;
//!if MIN
    least = low;
    scale = (high - low) / float(TOP);
//!else
//!if BYTES
    scale = abs(farthest) / 127.0;
//!else
    scale = farthest / -float(MIDDLE);
//!end
//!end
    return most < 0x7f800000u;
}

uvec4 levels_of(vec4 values, float inverse) {
//!if BYTES
    vec4 levels = values * inverse;
    return uvec4(ivec4(sign(levels) * floor(abs(levels) + 0.5))) & 0xffu;
//!else
    return uvec4(clamp(floor(values * inverse + (float(MIDDLE) + 0.5)), 0.0, float(TOP)));
//!end
}

// A word of the levels of a block.
uint word_of(int row, int block, int word, float inverse, float least) {
    int at = 8 * block;
//!if BYTES
    uvec4 four = levels_of(QUAD(row, at + word), inverse) << uvec4(0u, 8u, 16u, 24u);
    return four.x | four.y | four.z | four.w;
//!else
//!if FIFTHS
    if (word == 4) {
        uint bits = 0u;
        for (int i = 7; i >= 0; i--) {
            uvec4 four = levels_of(QUAD(row, at + i) - least, inverse) >> 4u << uvec4(0u, 1u, 2u, 3u);
            bits = bits << 4u | four.x | four.y | four.z | four.w;
        }
        return bits;
    }
//!end
    uvec4 low = (levels_of(QUAD(row, at + 2 * word) - least, inverse) & 15u) << uvec4(0u, 4u, 8u, 12u);
    uvec4 high = (levels_of(QUAD(row, at + 2 * word + 1) - least, inverse) & 15u) << uvec4(16u, 20u, 24u, 28u);
    uvec4 both = low | high;
    return both.x | both.y | both.z | both.w;
//!end
}

uvec4 texel(int row, int at) {
    uvec4 words = uvec4(0u);
    int block = -1;
    bool finite = true;
    float scale = 0.0;
    float least = 0.0;
    int mins = SCALES + ((BLOCKS_OF_ROW + 3) >> 2);
    bool is_level = at < SCALES;
    bool is_scale = at < mins;
    int first = 4 * (is_level ? at : is_scale ? at - SCALES : at - mins);
    int lanes_used = min(4, BLOCKS_OF_ROW * (is_level ? WORDS : 1) - first);
    for (int lane = 0; lane < lanes_used; lane++) {
        int index = first + lane;
        int of = is_level ? index / WORDS : index;
        if (of != block) finite = range(row, of, scale, least);
        block = of;
        if (is_level) {
            float inverse = scale == 0.0 ? 0.0 : 1.0 / scale;
            words[lane] = word_of(row, block, index - block * WORDS, inverse, least);
        } else {
            // A block with a number that is not finite is NaN, so that nothing is hidden.
            words[lane] = finite ? floatBitsToUint(half_of(is_scale ? scale : least)) : 0x7fc00000u;
        }
    }
    return words;
}
//!else
uint word_at(int row, int index) {
    return texelFetch(STATE, fold(row * ROW + (index >> 2)), 0)[index & 3];
}

// Numbers 4 * i to 4 * i + 3 of a row.
vec4 quad(int row, int i) {
    int block = i >> 3;
    int quarter = i & 7;
    float scale = uintBitsToFloat(word_at(row, 4 * SCALES + block));
//!if BYTES
    uint word = word_at(row, WORDS * block + quarter);
    ivec4 levels = ivec4(uvec4(word << 24u, word << 16u, word << 8u, word)) >> 24;
    return scale * vec4(levels);
//!else
    uint word = word_at(row, WORDS * block + (quarter >> 1)) >> uint(16 * (quarter & 1));
    uvec4 levels = (uvec4(word) >> uvec4(0u, 4u, 8u, 12u)) & 15u;
//!if FIFTHS
    uint fifths = word_at(row, WORDS * block + 4) >> uint(4 * quarter);
    levels |= ((uvec4(fifths) >> uvec4(0u, 1u, 2u, 3u)) & 1u) << 4u;
//!end
//!if MIN
    int mins = SCALES + ((BLOCKS_OF_ROW + 3) >> 2);
    return scale * vec4(levels) + uintBitsToFloat(word_at(row, 4 * mins + block));
//!else
    return scale * (vec4(levels) - float(MIDDLE));
//!end
//!end
}
//!end
