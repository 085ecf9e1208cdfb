// argmax, pass 1: the index of the largest element of each chunk of each row.
#include "raw.glsl"

float raw(int index) {
    int row = index / chunks;
    int from = (index - row * chunks) * chunk;
    int end = min(from + chunk, cols);
    int best = from;
    float largest = load1(src_x, cols, row, from);
    for (int col = from + 1; col < end; col++) {
        float x = load1(src_x, cols, row, col);
        if (x > largest) {
            largest = x;
            best = col;
        }
    }
    return float(best);
}
