// What decoders share.

//!include halves.glsl

float half_float(uint h) {
    return half_floats(uvec4(h)).x;
}

vec2 half_pair(uint word) {
    return half_floats(uvec4(word & 0xffffu, word >> 16, 0u, 0u)).xy;
}

uint word_of(uvec4 texel, int i) {
    return texel[i];
}

uint half_of(uint word, int i) {
    return (word >> ((i & 1) << 4)) & 0xffffu;
}

// Quants become levels, floats in [1, 2), when they are put into the fraction's upper bits: cheaper than conversions.
vec4 level(uvec4 fraction) {
    return uintBitsToFloat(fraction | 0x3f800000u);
}

// 1 + q / 16 for 4 nibbles.
vec4 nibbles(uint word) {
    return level((uvec4(word) << uvec4(19, 15, 11, 7)) & 0x780000u);
}

// 1 + q / 32 for 4 nibbles with their fifth bits.
vec4 fifths(uint word, uint bits) {
    uvec4 low = (uvec4(word) << uvec4(18, 14, 10, 6)) & 0x3c0000u;
    return level(low | ((uvec4(bits) << uvec4(22, 21, 20, 19)) & 0x400000u));
}

// 1 + (q + 128) / 256 for 4 signed bytes.
vec4 signed_bytes(uint word) {
    uint bytes = word ^ 0x80808080u;
    return level(uvec4(bytes << 15, bytes << 7, bytes >> 1, bytes >> 9) & 0x7f8000u);
}
