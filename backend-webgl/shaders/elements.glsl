// For kernels that make their result one element at a time: `float element(int row, int col)`, `element2` with TWO.
//!include frame.glsl

float element(int row, int col);

vec4 value(int row, int col) {
    vec4 v = vec4(element(row, col), 0.0, 0.0, 0.0);
//!if PACKED
    if (col + 1 < out_cols) v.y = element(row, col + 1);
    if (col + 2 < out_cols) v.z = element(row, col + 2);
    if (col + 3 < out_cols) v.w = element(row, col + 3);
//!end
    return v;
}

//!if TWO
float element2(int row, int col);

vec4 value2(int row, int col) {
    vec4 v = vec4(element2(row, col), 0.0, 0.0, 0.0);
//!if PACKED
    if (col + 1 < out_cols) v.y = element2(row, col + 1);
    if (col + 2 < out_cols) v.z = element2(row, col + 2);
    if (col + 3 < out_cols) v.w = element2(row, col + 3);
//!end
    return v;
}
//!end
