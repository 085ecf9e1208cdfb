// Q5_0: d * (q - 16), and a level is 1 + q / 32.
void levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    float d = weight_half(PLANE2, group);
    uint bits = weight_word(PLANE1, group);
    uvec4 t = weight_texel(PLANE0 + group);
    q0 = fifths(t.x, bits);
    q1 = fifths(t.x >> 16, bits >> 4);
    q2 = fifths(t.y, bits >> 8);
    q3 = fifths(t.y >> 16, bits >> 12);
    q4 = fifths(t.z, bits >> 16);
    q5 = fifths(t.z >> 16, bits >> 20);
    q6 = fifths(t.w, bits >> 24);
    q7 = fifths(t.w >> 16, bits >> 28);
    affine = d * vec4(32.0, -48.0, 32.0, -48.0);
}
