// argmax, pass 2: the best of the chunks; -1 if one of them has none.
//!include elements.glsl

float element(int row, int col) {
//!if APPEND
    int from = 0;
//!else
    int from = row * out_cols + col;
//!end
    int best = int(raw_at(src_chunks, from * chunks));
    if (best < 0) return -1.0;
    float largest = load1(src_x, cols, from, best);
    // Four at a time: a chunk's value is known where its index is, so these loads wait for each other.
    for (int i = 1; i < chunks; i += 4) {
        ivec4 of = from * chunks + min(ivec4(i) + ivec4(0, 1, 2, 3), chunks - 1);
        vec4 at = vec4(
            raw_at(src_chunks, of.x), raw_at(src_chunks, of.y), raw_at(src_chunks, of.z), raw_at(src_chunks, of.w)
        );
        if (any(lessThan(at, vec4(0.0)))) return -1.0;
        vec4 x = vec4(
            load1(src_x, cols, from, int(at.x)),
            load1(src_x, cols, from, int(at.y)),
            load1(src_x, cols, from, int(at.z)),
            load1(src_x, cols, from, int(at.w))
        );
        for (int lane = 0; lane < min(chunks - i, 4); lane++) {
            if (pick(x, lane) > largest) {
                largest = pick(x, lane);
                best = int(pick(at, lane));
            }
        }
    }
    return float(best);
}
