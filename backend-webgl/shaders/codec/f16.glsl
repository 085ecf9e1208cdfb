// States in halves, two to a word, where textures hold words. A row has ROW texels.
//!if WRITER
// The bits of the nearest half, of which an even one comes first.
uint half_bits(float value) {
    uint bits = floatBitsToUint(value);
    uint magnitude = bits & 0x7fffffffu;
    uint half_magnitude = min((magnitude + 0xfffu + ((magnitude >> 13u) & 1u) - 0x38000000u) >> 13u, 0x7c00u);
    if (magnitude < 0x38800000u) half_magnitude = uint(roundEven(abs(value) * 16777216.0));
    if (magnitude > 0x7f800000u) half_magnitude = 0x7e00u;
    return ((bits >> 16u) & 0x8000u) | half_magnitude;
}

uint pair(vec2 values) {
    return half_bits(values.x) | half_bits(values.y) << 16u;
}

uvec4 texel(int row, int at) {
    vec4 low = QUAD(row, 2 * at);
    vec4 high = QUAD(row, 2 * at + 1);
    return uvec4(pair(low.xy), pair(low.zw), pair(high.xy), pair(high.zw));
}
//!else
// Numbers 4 * i to 4 * i + 3 of a row.
vec4 quad(int row, int i) {
    uvec4 texel = texelFetch(STATE, fold(row * ROW + (i >> 1)), 0);
    uvec2 words = (i & 1) == 0 ? texel.xy : texel.zw;
    return half_floats(uvec4(words.x & 0xffffu, words.x >> 16u, words.y & 0xffffu, words.y >> 16u));
}
//!end
