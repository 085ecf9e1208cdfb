// What softmax needs of a row: its largest score and the reciprocal sum of the weights; 0 if no column is seen.
//!include masking.glsl

vec4 scores4(int cols, int row, int c4) {
    vec4 score = cap(scale * load4(src_x, cols, row, c4));
//!if EXPLICIT
    score = max(score + load4(src_mask, cols, row % queries, c4), vec4(LOWEST));
//!end
    return score;
}

void row_softmax(int cols, int row, out float largest, out float factor) {
    int start;
    int end;
    visible(row % queries, queries, cols, start, end);
    int last = (end + 3) >> 2;
    // One look at the row: when a larger score comes, what was summed so far shrinks.
//!if SINKS
    largest = load1(src_sinks, heads, 0, row / queries % heads);
    float sum = 1.0;
//!else
    largest = LOWEST;
    float sum = 0.0;
//!end
//!if EXPLICIT
    bool found = false;
//!else
    bool found = start < end;
//!end
    for (int c4 = start >> 2; c4 < last; c4++) {
        bvec4 within = inside(4 * c4, start, end);
        vec4 seen = mix(vec4(LOWEST), scores4(cols, row, c4), within);
//!if EXPLICIT
        within = shown(seen);
        found = found || any(within);
//!end
        float top = max(max(seen.x, seen.y), max(seen.z, seen.w));
        if (top > largest) {
            sum *= exp(max(largest - top, -100.0));
            largest = top;
        }
        sum += dot(exp(max(seen - largest, -100.0)), vec4(within));
    }
    // Not a look at the sum: scores that are NaN may leave nothing of it.
    factor = found ? 1.0 / sum : 0.0;
}
