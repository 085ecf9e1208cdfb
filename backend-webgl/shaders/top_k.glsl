// top_k, last pass: values and ids of the one list of each row.
#include "elements.glsl"

float element(int row, int col) {
    return load1(src_x, cols, row, int(raw_at(src_lists, row * list + col)));
}

float element2(int row, int col) {
    return raw_at(src_lists, row * list + col);
}
