// Mean and reciprocal deviation of a row (layer norm), or 0 and the reciprocal root mean square.

void row_stats(sampler2D source, int cols, int row, float epsilon, out float mean, out float factor) {
    int groups4 = (cols + 3) >> 2;
    float size = float(cols);
    mean = 0.0;
#ifdef LAYER
    vec4 sum = vec4(0.0);
    for (int c4 = 0; c4 < groups4; c4++) sum += load4(source, cols, row, c4);
    mean = dot(sum, vec4(1.0)) / size;
#endif
    vec4 squares = vec4(0.0);
    for (int c4 = 0; c4 < groups4; c4++) {
        vec4 d = keep(load4(source, cols, row, c4) - mean, 4 * c4, cols);
        squares += d * d;
    }
    factor = 1.0 / sqrt(dot(squares, vec4(1.0)) / size + epsilon);
}
