// An element of a row of heads, rotated by the table's angles for a position.

float rotated(sampler2D source, int cols, int row, int col, int position) {
    float x = load1(source, cols, row, col);
#ifdef ROPE
    int channel = col % head_dim; // parts of a fused row begin at whole heads
    if (channel >= n_dims) return x;
    int at = min(position, table_rows - 1);
#ifdef NEOX
    int half_dims = n_dims / 2;
    bool first = channel < half_dims;
    int pair = first ? channel : channel - half_dims;
    int partner = first ? col + half_dims : col - half_dims;
#else
    bool first = (channel & 1) == 0;
    int pair = channel >> 1;
    int partner = first ? col + 1 : col - 1;
#endif
    float y = load1(source, cols, row, partner);
    float c = load1(src_table, n_dims, at, 2 * pair);
    float s = load1(src_table, n_dims, at, 2 * pair + 1);
    return first ? x * c - y * s : x * c + y * s;
#else
    return x;
#endif
}
