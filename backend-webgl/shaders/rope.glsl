// rope: heads rotated by the step's positions. Also the query part of a fused projection, whose rows are wider.
//!include elements.glsl
//!include rope_at.glsl

float element(int row, int col) {
    return rotated(x_cols, row, col, int(step_position) + row);
}
