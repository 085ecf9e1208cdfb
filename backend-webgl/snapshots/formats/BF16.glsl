vec4 a_four(uvec2 words) {
    return uintBitsToFloat(uvec4(words.x << 16, words.x & 0xffff0000u, words.y << 16, words.y & 0xffff0000u));
}

void a_levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    int at = plane0_a + 4 * group;
    uvec4 t = weight_texel(at);
    q0 = a_four(t.xy);
    q1 = a_four(t.zw);
    t = weight_texel(at + 1);
    q2 = a_four(t.xy);
    q3 = a_four(t.zw);
    t = weight_texel(at + 2);
    q4 = a_four(t.xy);
    q5 = a_four(t.zw);
    t = weight_texel(at + 3);
    q6 = a_four(t.xy);
    q7 = a_four(t.zw);
    affine = vec4(1.0, 0.0, 1.0, 0.0);
}
