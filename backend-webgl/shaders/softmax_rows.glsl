// softmax of several rows, pass 1: of each row the largest score and the reciprocal sum.
//!include raw.glsl
//!include softmax_stats.glsl

float factor;

float raw(int row) {
    float largest;
    row_softmax(cols, row, largest, factor);
    return largest;
}

float raw2(int row) {
    return factor;
}
