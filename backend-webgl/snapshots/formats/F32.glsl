void a_levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    int at = plane0_a + 8 * group;
    q0 = uintBitsToFloat(weight_texel(at));
    q1 = uintBitsToFloat(weight_texel(at + 1));
    q2 = uintBitsToFloat(weight_texel(at + 2));
    q3 = uintBitsToFloat(weight_texel(at + 3));
    q4 = uintBitsToFloat(weight_texel(at + 4));
    q5 = uintBitsToFloat(weight_texel(at + 5));
    q6 = uintBitsToFloat(weight_texel(at + 6));
    q7 = uintBitsToFloat(weight_texel(at + 7));
    affine = vec4(1.0, 0.0, 1.0, 0.0);
}
