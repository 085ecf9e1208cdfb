// repeat: a tensor as a tile.
//!include elements.glsl

float element(int row, int col) {
    // Dimensions of the result are multiples of those of x.
    int d0 = row / (dim1 * dim2) % x0;
    int d1 = row / dim2 % x1;
    return load1(src_x, x3, (d0 * x1 + d1) * x2 + row % x2, col % x3);
}
