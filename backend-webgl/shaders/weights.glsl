// Access to one packed operand; the names in capitals are replaced for each.
uniform usampler2DArray WEIGHTS;

uvec4 weight_texel(int i) {
    int line = i >> WEIGHT_LINE_SHIFT;
    ivec3 at = ivec3(i & (WEIGHT_LINE - 1), line & (WEIGHT_PAGE - 1), line >> WEIGHT_PAGE_SHIFT);
    return texelFetch(WEIGHTS, at, 0);
}

uint weight_word(int plane, int i) {
    return word_of(weight_texel(plane + (i >> 2)), i & 3);
}

float weight_half(int plane, int i) {
    return half_float(half_of(weight_word(plane, i >> 1), i));
}

// The quants of 32 neighbours as levels; the weights are affine.x * level + affine.y for the first 16 of them,
// affine.z * level + affine.w for the others.
void levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
);

void decode32(
    int group, out vec4 w0, out vec4 w1, out vec4 w2, out vec4 w3, out vec4 w4, out vec4 w5, out vec4 w6, out vec4 w7
) {
    vec4 affine;
    levels32(group, w0, w1, w2, w3, w4, w5, w6, w7, affine);
    w0 = affine.x * w0 + affine.y;
    w1 = affine.x * w1 + affine.y;
    w2 = affine.x * w2 + affine.y;
    w3 = affine.x * w3 + affine.y;
    w4 = affine.z * w4 + affine.w;
    w5 = affine.z * w5 + affine.w;
    w6 = affine.z * w6 + affine.w;
    w7 = affine.z * w7 + affine.w;
}
