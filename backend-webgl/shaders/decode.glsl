// What decoders share.

// Halves are decoded with integers: the built-in may flush subnormal scales.
float half_float(uint h) {
    uint exponent = (h >> 10) & 31u;
    uint mantissa = h & 1023u;
    float size = exponent == 0u
        ? float(mantissa) * 5.9604644775390625e-8
        : uintBitsToFloat(((exponent == 31u ? 255u : exponent + 112u) << 23) | (mantissa << 13));
    return (h & 0x8000u) != 0u ? -size : size;
}

uint word_of(uvec4 texel, int i) {
    return i < 2 ? (i == 0 ? texel.x : texel.y) : (i == 2 ? texel.z : texel.w);
}

uint half_of(uint word, int i) {
    return (i & 1) == 0 ? word & 0xffffu : word >> 16;
}

vec4 nibbles(uint word) {
    return vec4((uvec4(word) >> uvec4(0, 4, 8, 12)) & 15u);
}

vec4 signed_bytes(uint word) {
    return vec4(ivec4(uvec4(word) << uvec4(24, 16, 8, 0)) >> 24);
}

// Bits of four elements, 16 each.
vec4 fifths(uint bits) {
    return vec4((uvec4(bits) >> uvec4(0, 1, 2, 3)) & 1u) * 16.0;
}
