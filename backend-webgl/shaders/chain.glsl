// chain: what RESULT says of the elements that belong to those of the fragment, after LINES. VIEWS finds them.
//!include frame.glsl

// Where an operand has what belongs to a column of a row.
int strided(int row, int col, ivec4 strides, int first) {
    ivec4 at = ivec4(row / (dim1 * dim2), row / dim2 % dim1, row % dim2, col) * strides;
    return first + at.x + at.y + at.z + at.w;
}

VIEWS
vec4 value(int row, int col) {
LINES
    return RESULT;
}
