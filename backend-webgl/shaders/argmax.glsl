// argmax, pass 2: the best of the chunks.
#include "elements.glsl"

float element(int row, int col) {
#ifdef APPEND
    int from = 0;
#else
    int from = row * out_cols + col;
#endif
    int best = int(raw_at(src_chunks, from * chunks));
    float largest = load1(src_x, cols, from, best);
    for (int i = 1; i < chunks; i++) {
        int at = int(raw_at(src_chunks, from * chunks + i));
        float x = load1(src_x, cols, from, at);
        if (x > largest) {
            largest = x;
            best = at;
        }
    }
    return float(best);
}
