// pointwise: ELEMENT of the elements at one place, of one operand or, with PAIR, of two.
//!include frame.glsl
//!function ELEMENT

vec4 value(int row, int col) {
//!if PAIR
    vec4 first = lanes(src_x, out_cols, row, col);
    return ELEMENT(first, lanes(src_y, out_cols, row, col));
//!else
    vec4 alone = lanes(src_x, out_cols, row, col);
    return ELEMENT(alone);
//!end
}
