// Halves as bits.

// Halves are decoded with integers: the built-in may flush subnormal scales.
// No branches: drivers that unroll or inline would multiply them.
vec4 half_floats(uvec4 h) {
    uvec4 magnitude = h & 0x7fffu;
    // Infinity and NaN move up by another 112 exponents.
    uvec4 bits = (magnitude << 13) + 0x38000000u + 0x38000000u * uvec4(greaterThanEqual(magnitude, uvec4(0x7c00u)));
    // A subnormal half is a fraction without the leading 1.
    vec4 tiny = uintBitsToFloat(bits + 0x800000u) - 6.103515625e-5;
    vec4 size = mix(uintBitsToFloat(bits), tiny, lessThan(magnitude, uvec4(0x400u)));
    return uintBitsToFloat(floatBitsToUint(size) | ((h & 0x8000u) << 16));
}
