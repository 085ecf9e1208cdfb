// Q8_0: d * q.
void decode32(
    int group, out vec4 w0, out vec4 w1, out vec4 w2, out vec4 w3, out vec4 w4, out vec4 w5, out vec4 w6, out vec4 w7
) {
    float d = weight_half(PLANE1, group);
    uvec4 t = weight_texel(PLANE0 + 2 * group);
    w0 = d * signed_bytes(t.x);
    w1 = d * signed_bytes(t.y);
    w2 = d * signed_bytes(t.z);
    w3 = d * signed_bytes(t.w);
    t = weight_texel(PLANE0 + 2 * group + 1);
    w4 = d * signed_bytes(t.x);
    w5 = d * signed_bytes(t.y);
    w6 = d * signed_bytes(t.z);
    w7 = d * signed_bytes(t.w);
}
