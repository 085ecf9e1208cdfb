// Floats. F32: a group is 8 texels; F16 and BF16: 4 texels of 8 each, two a word.
//!if !F32
vec4 four(uvec2 words) {
//!if F16
    return half_floats(uvec4(words.x & 0xffffu, words.x >> 16, words.y & 0xffffu, words.y >> 16));
//!else
    return uintBitsToFloat(uvec4(words.x << 16, words.x & 0xffff0000u, words.y << 16, words.y & 0xffff0000u));
//!end
}

//!end
void levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
//!if F32
    int at = VALUES + 8 * group;
    q0 = uintBitsToFloat(weight_texel(at));
    q1 = uintBitsToFloat(weight_texel(at + 1));
    q2 = uintBitsToFloat(weight_texel(at + 2));
    q3 = uintBitsToFloat(weight_texel(at + 3));
    q4 = uintBitsToFloat(weight_texel(at + 4));
    q5 = uintBitsToFloat(weight_texel(at + 5));
    q6 = uintBitsToFloat(weight_texel(at + 6));
    q7 = uintBitsToFloat(weight_texel(at + 7));
//!else
    int at = VALUES + 4 * group;
    uvec4 t = weight_texel(at);
    q0 = four(t.xy);
    q1 = four(t.zw);
    t = weight_texel(at + 1);
    q2 = four(t.xy);
    q3 = four(t.zw);
    t = weight_texel(at + 2);
    q4 = four(t.xy);
    q5 = four(t.zw);
    t = weight_texel(at + 3);
    q6 = four(t.xy);
    q7 = four(t.zw);
//!end
    affine = vec4(1.0, 0.0, 1.0, 0.0);
}
