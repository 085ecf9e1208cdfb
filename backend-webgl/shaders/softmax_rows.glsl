// softmax of several rows, pass 1: of each row the largest score and the reciprocal sum, one after the other.
#include "raw.glsl"
#include "softmax_stats.glsl"

float raw(int index) {
    float largest;
    float factor;
    row_softmax(cols, index >> 1, largest, factor);
    return (index & 1) == 0 ? largest : factor;
}
