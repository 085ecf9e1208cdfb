// argsort, last pass: the one list of each row.
//!include elements.glsl

float element(int row, int col) {
    int at = row * out_cols + col;
    int of = at / cols;
    return raw_at(src_lists, of * list + at - of * cols);
}
