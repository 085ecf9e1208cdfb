// F32: a group is 8 texels.
void decode32(
    int group, out vec4 w0, out vec4 w1, out vec4 w2, out vec4 w3, out vec4 w4, out vec4 w5, out vec4 w6, out vec4 w7
) {
    int at = PLANE0 + 8 * group;
    w0 = uintBitsToFloat(weight_texel(at));
    w1 = uintBitsToFloat(weight_texel(at + 1));
    w2 = uintBitsToFloat(weight_texel(at + 2));
    w3 = uintBitsToFloat(weight_texel(at + 3));
    w4 = uintBitsToFloat(weight_texel(at + 4));
    w5 = uintBitsToFloat(weight_texel(at + 5));
    w6 = uintBitsToFloat(weight_texel(at + 6));
    w7 = uintBitsToFloat(weight_texel(at + 7));
}
