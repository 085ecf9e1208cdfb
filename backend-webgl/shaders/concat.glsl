// concat: along columns, or along rows in blocks of `a_block` and `b_block`.
//!include elements.glsl

float element(int row, int col) {
//!if COLUMNS
    return col < a_cols ? load1(src_a, a_cols, row, col) : load1(src_b, out_cols - a_cols, row, col - a_cols);
//!else
    int block = row / (a_block + b_block);
    int at = row - block * (a_block + b_block);
    if (at < a_block) return load1(src_a, out_cols, block * a_block + at, col);
    return load1(src_b, out_cols, block * b_block + at - a_block, col);
//!end
}
