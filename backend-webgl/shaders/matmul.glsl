// matmul of dense operands: batches of a and b repeat in place.
//!include frame.glsl
//!include group.glsl

// Where the group of columns begins in the row of a and in the rows of b.
ivec2 at_a, at0, at1, at2, at3;

vec4 part(int i) {
    vec4 x = group4(src_a, k, at_a, i);
//!if PACKED
    return vec4(
        dot(x, group4(src_b, k, at0, i)),
        dot(x, group4(src_b, k, at1, i)),
        dot(x, group4(src_b, k, at2, i)),
        dot(x, group4(src_b, k, at3, i))
    );
//!else
    return vec4(dot(x, group4(src_b, k, at0, i)), 0.0, 0.0, 0.0);
//!end
}

vec4 value(int row, int col) {
    int i0 = row / (dim1 * m);
    int i1 = row / m % dim1;
    int i2 = row % m;
    int a_row = (i0 * a0 / dim0 * a1 + i1 * a1 / dim1) * m + i2;
    int b_row = (i0 * b0 / dim0 * b1 + i1 * b1 / dim1) * out_cols;
    int groups = (k + 31) >> 5;
    vec4 sum = vec4(0.0);
    for (int group = 0; group < groups; group++) {
        at_a = group_at(k, a_row, group);
        at0 = group_at(k, b_row + col, group);
//!if PACKED
        at1 = group_at(k, b_row + min(col + 1, out_cols - 1), group);
        at2 = group_at(k, b_row + min(col + 2, out_cols - 1), group);
        at3 = group_at(k, b_row + min(col + 3, out_cols - 1), group);
//!end
        sum += ((part(0) + part(1)) + (part(2) + part(3))) + ((part(4) + part(5)) + (part(6) + part(7)));
    }
    return sum;
}
