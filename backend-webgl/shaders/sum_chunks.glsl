// sum and cumsum, pass 1: the sum of each chunk of each row.
//!include raw.glsl

float raw(int index) {
    int row = index / chunks;
    int from = (index - row * chunks) * chunk;
    vec4 sum = vec4(0.0);
    // Chunks begin at whole texels.
    for (int col = from; col < min(from + chunk, cols); col += 4) {
        sum += keep(load4(src_x, cols, row, col >> 2), col, cols);
    }
    return (sum.x + sum.y) + (sum.z + sum.w);
}
