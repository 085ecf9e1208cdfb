// pick: elements of each row by their columns; 0 for what is none.
//!include elements.glsl

float element(int row, int col) {
    int at = row * out_cols + col;
    int id = int(load1(src_ids, ids_cols, at / ids_cols, at % ids_cols));
    float picked = load1(src_x, cols, row, clamp(id, 0, cols - 1));
    return id >= 0 && id < cols ? picked : 0.0;
}
