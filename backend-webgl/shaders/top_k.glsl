// top_k, last pass: values and ids of the one list of each row; 0 and -1 if the row is not finite.
//!include elements.glsl

float element(int row, int col) {
    int id = int(raw_at(src_lists, row * list + col));
    return id < 0 ? 0.0 : load1(src_x, cols, row, id);
}

float element2(int row, int col) {
    return max(raw_at(src_lists, row * list + col), -1.0);
}
