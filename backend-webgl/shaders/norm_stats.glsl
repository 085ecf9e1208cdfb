// Mean and reciprocal deviation of a row of x (LAYER), or 0 and the reciprocal root mean square or length (L2).
//!include group.glsl

void row_stats(int cols, int row, float epsilon, out float mean, out float factor) {
    int groups = (cols + 31) >> 5;
    float size = float(cols);
    // One pass: deviations are taken from a value of the row, so that a common offset costs no digits.
//!if LAYER
    float shift = load1(src_x, cols, row, 0);
//!else
    float shift = 0.0;
//!end
    vec4 sum = vec4(0.0);
    vec4 squares = vec4(0.0);
    for (int group = 0; group < groups; group++) {
        ivec2 at = group_at(cols, row, group);
        vec4 d0 = keep4(group4(src_x, cols, at, 0) - shift, cols, at, 0);
        vec4 d1 = keep4(group4(src_x, cols, at, 1) - shift, cols, at, 1);
        vec4 d2 = keep4(group4(src_x, cols, at, 2) - shift, cols, at, 2);
        vec4 d3 = keep4(group4(src_x, cols, at, 3) - shift, cols, at, 3);
        vec4 d4 = keep4(group4(src_x, cols, at, 4) - shift, cols, at, 4);
        vec4 d5 = keep4(group4(src_x, cols, at, 5) - shift, cols, at, 5);
        vec4 d6 = keep4(group4(src_x, cols, at, 6) - shift, cols, at, 6);
        vec4 d7 = keep4(group4(src_x, cols, at, 7) - shift, cols, at, 7);
        sum += ((d0 + d1) + (d2 + d3)) + ((d4 + d5) + (d6 + d7));
        squares += ((d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)) + ((d4 * d4 + d5 * d5) + (d6 * d6 + d7 * d7));
    }
//!if LAYER
    float offset = total(sum) / size;
    mean = shift + offset;
    float variance = max(total(squares) / size - offset * offset, 0.0);
//!else
    mean = 0.0;
    float variance = total(squares) / size;
//!end
//!if L2
    factor = 1.0 / max(sqrt(total(squares)), epsilon);
//!else
    factor = 1.0 / sqrt(variance + epsilon);
//!end
}
