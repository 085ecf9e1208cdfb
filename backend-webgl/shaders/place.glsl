// Coordinates of operands from those of results.

// The coordinates of an element of the result.
ivec4 place(int row, int col) {
    return ivec4(row / (dim1 * dim2), row / dim2 % dim1, row % dim2, min(col, out_cols - 1));
}

// A coordinate that is shifted, and goes round.
int around(int d, int shift, int dim) {
    return (d + shift) % dim;
}

// Whether a coordinate is among `len` from `first` on.
bool within(int d, int first, int len) {
    return d >= first && d < first + len;
}
