// F16: a group is 4 texels.
vec4 four(uvec2 words) {
    return half_floats(uvec4(words.x & 0xffffu, words.x >> 16, words.y & 0xffffu, words.y >> 16));
}

void decode32(
    int group, out vec4 w0, out vec4 w1, out vec4 w2, out vec4 w3, out vec4 w4, out vec4 w5, out vec4 w6, out vec4 w7
) {
    int at = PLANE0 + 4 * group;
    uvec4 t = weight_texel(at);
    w0 = four(t.xy);
    w1 = four(t.zw);
    t = weight_texel(at + 1);
    w2 = four(t.xy);
    w3 = four(t.zw);
    t = weight_texel(at + 2);
    w4 = four(t.xy);
    w5 = four(t.zw);
    t = weight_texel(at + 3);
    w6 = four(t.xy);
    w7 = four(t.zw);
}
