// sum, pass 2: the chunks of each row together.
//!include elements.glsl

float element(int row, int col) {
    float sum = 0.0;
    for (int i = 0; i < chunks; i++) {
        sum += raw_at(src_sums, (row * out_cols + col) * chunks + i);
    }
    return sum;
}
