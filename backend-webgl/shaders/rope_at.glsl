// An element of a row of heads of x, rotated by the table's angles for a position. With NORM heads are normed before by
// the factors that pass 1 found: one for each, or with NORM_WHOLE one for all queries and one for all keys.

float normed(int cols, int row, int col) {
    float x = load1(src_x, cols, row, col);
//!if NORM
//!if NORM_WHOLE
    x *= raw_at(src_factors, row * normed_heads + normed_part) * load1(src_gamma, cols, 0, col - normed_start);
//!else
    x *= raw_at(src_factors, row * normed_heads + col / head_dim) * load1(src_gamma, head_dim, 0, col % head_dim);
//!end
//!end
    return x;
}

float rotated(int cols, int row, int col, int position) {
    float x = normed(cols, row, col);
//!if ROPE
    int channel = col % head_dim; // parts of a fused row begin at whole heads
    if (channel >= n_dims) return x;
    int at = min(position, table_rows - 1);
//!if NEOX
    int half_dims = n_dims / 2;
    bool first = channel < half_dims;
    int pair = first ? channel : channel - half_dims;
    int partner = first ? col + half_dims : col - half_dims;
//!else
    bool first = (channel & 1) == 0;
    int pair = channel >> 1;
    int partner = first ? col + 1 : col - 1;
//!end
    float y = normed(cols, row, partner);
    float c = load1(src_table, n_dims, at, 2 * pair);
    float s = load1(src_table, n_dims, at, 2 * pair + 1);
    return first ? x * c - y * s : x * c + y * s;
//!else
    return x;
//!end
}
