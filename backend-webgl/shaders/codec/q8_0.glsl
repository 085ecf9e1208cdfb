// States in bytes: blocks of 32 with a scale. A row of ROW texels has the bytes of all its blocks, then their scales
// from texel SCALES on.
//!if WRITER
// A scale as a half would hold it.
float half_of(float scale) {
    if (scale < 6.1035156e-5) return floor(scale * 16777216.0 + 0.5) / 16777216.0;
    uint bits = floatBitsToUint(scale);
    return uintBitsToFloat((bits + 0xfffu + ((bits >> 13u) & 1u)) & 0xffffe000u);
}

// The bits of the largest magnitude of a block: magnitudes are ordered as their bits are, and those of NaN and infinity
// come last.
uint largest_of(int row, int block) {
    uvec4 most = uvec4(0u);
    int end = 8 * block + 8;
    for (int c4 = 8 * block; c4 < end; c4++) {
        most = max(most, floatBitsToUint(QUAD(row, c4)) & 0x7fffffffu);
    }
    return max(max(most.x, most.y), max(most.z, most.w));
}

// The bits of a block's scale. A block with a number that is not finite is NaN, so that nothing is hidden.
uint scale_bits(int row, int block) {
    uint most = largest_of(row, block);
    return most < 0x7f800000u ? floatBitsToUint(half_of(uintBitsToFloat(most) / 127.0)) : 0x7fc00000u;
}

uint word_of(vec4 levels) {
    uvec4 bytes = uvec4(ivec4(sign(levels) * floor(abs(levels) + 0.5))) & 0xffu;
    return bytes.x | bytes.y << 8u | bytes.z << 16u | bytes.w << 24u;
}

uvec4 texel(int row, int at) {
    if (at >= SCALES) {
        int block = 4 * (at - SCALES);
        uvec4 scales = uvec4(0u);
        for (int i = 0; i < min(4, BLOCKS_OF_ROW - block); i++) {
            scales[i] = scale_bits(row, block + i);
        }
        return scales;
    }
    float scale = uintBitsToFloat(largest_of(row, at >> 1)) / 127.0;
    float inverse = scale > 0.0 ? 1.0 / scale : 0.0;
    return uvec4(
        word_of(QUAD(row, 4 * at) * inverse),
        word_of(QUAD(row, 4 * at + 1) * inverse),
        word_of(QUAD(row, 4 * at + 2) * inverse),
        word_of(QUAD(row, 4 * at + 3) * inverse)
    );
}
//!else
uint word_at(uvec4 texel, int lane) {
    return texel[lane];
}

// Numbers 4 * i to 4 * i + 3 of a row.
vec4 quad(int row, int i) {
    uint word = word_at(texelFetch(STATE, fold(row * ROW + (i >> 2)), 0), i & 3);
    int block = i >> 3;
    uint scale = word_at(texelFetch(STATE, fold(row * ROW + SCALES + (block >> 2)), 0), block & 3);
    ivec4 bytes = ivec4(uvec4(word << 24u, word << 16u, word << 8u, word)) >> 24;
    return uintBitsToFloat(scale) * vec4(bytes);
}
//!end
