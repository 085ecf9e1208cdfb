// Access to one packed operand; the names in capitals are replaced for each.
uvec4 weight_texel(int i) {
    int y = i >> WIDTH_SHIFT;
    return texelFetch(WEIGHTS, ivec3(i & (WIDTH - 1), y & (LAYER_HEIGHT - 1), y >> LAYER_SHIFT), 0);
}

uint weight_word(int plane, int i) {
    return word_of(weight_texel(plane + (i >> 2)), i & 3);
}

float weight_half(int plane, int i) {
    return half_float(half_of(weight_word(plane, i >> 1), i));
}
