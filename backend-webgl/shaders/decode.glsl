// What decoders share.

// Halves are decoded with integers: the built-in may flush subnormal scales.
// No branches: drivers that unroll or inline would multiply them.
vec4 half_floats(uvec4 h) {
    uvec4 magnitude = h & 0x7fffu;
    // Infinity and NaN move up by another 112 exponents.
    uvec4 bits = (magnitude << 13) + 0x38000000u + 0x38000000u * uvec4(greaterThanEqual(magnitude, uvec4(0x7c00u)));
    vec4 tiny = vec4(magnitude) * 5.9604644775390625e-8;
    vec4 size = mix(uintBitsToFloat(bits), tiny, lessThan(magnitude, uvec4(0x400u)));
    return mix(size, -size, notEqual(h & 0x8000u, uvec4(0u)));
}

float half_float(uint h) {
    return half_floats(uvec4(h)).x;
}

uint word_of(uvec4 texel, int i) {
    return texel[i];
}

uint half_of(uint word, int i) {
    return (word >> ((i & 1) << 4)) & 0xffffu;
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
