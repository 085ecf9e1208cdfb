// tri: a triangle of each matrix, and zeros elsewhere.
//!include elements.glsl

float element(int row, int col) {
    int apart = upper == 1 ? col - row % rows : row % rows - col;
    return apart >= least ? load1(src_x, out_cols, row, col) : 0.0;
}
