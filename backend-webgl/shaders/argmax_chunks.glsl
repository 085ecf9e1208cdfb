// argmax, pass 1: the index of the largest element of each chunk of each row; -1 if one of them is not finite.
//!include raw.glsl
//!include finite.glsl

float raw(int index) {
    int row = index / chunks;
    int from = (index - row * chunks) * chunk;
    int end = min(from + chunk, cols);
    int best = from;
    float largest = load1(src_x, cols, row, from);
    // Four at a time: chunks begin at whole texels.
    for (int col = from; col < end; col += 4) {
        vec4 x = load4(src_x, cols, row, col >> 2);
        for (int i = 0; i < min(end - col, 4); i++) {
            if (!finite(pick(x, i))) return -1.0;
            if (pick(x, i) > largest) {
                largest = pick(x, i);
                best = col + i;
            }
        }
    }
    return float(best);
}
