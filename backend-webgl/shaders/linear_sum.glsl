// linear in slices, pass 2 where nothing is blended: adds up the rows that the slices made.
//!include frame.glsl

vec4 value(int row, int col) {
    vec4 sum = vec4(0.0);
    for (int i = 0; i < slices; i++) {
        sum += lanes(src_slices, out_cols, i * out_rows + row, col);
    }
    return sum;
}
