// pad: zeros before and after the elements of each dimension, or what is there already (OVER); CIRCULAR, they go round.
//!include elements.glsl

float element(int row, int col) {
//!if CIRCULAR
    int d0 = (row / (dim1 * dim2) + shift0) % x0;
    int d1 = (row / dim2 % dim1 + shift1) % x1;
    int d2 = (row % dim2 + shift2) % x2;
    return load1(src_x, x3, (d0 * x1 + d1) * x2 + d2, (col + shift3) % x3);
//!else
    int d0 = row / (dim1 * dim2) - before0;
    int d1 = row / dim2 % dim1 - before1;
    int d2 = row % dim2 - before2;
    int d3 = col - before3;
    bool inside = min(min(d0, d1), min(d2, d3)) >= 0 && d0 < x0 && d1 < x1 && d2 < x2 && d3 < x3;
    if (inside) return load1(src_x, x3, (d0 * x1 + d1) * x2 + d2, d3);
//!if OVER
    return load1(src_under, out_cols, row, col);
//!else
    return 0.0;
//!end
//!end
}
