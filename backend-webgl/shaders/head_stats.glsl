// Mean and reciprocal deviation (LAYER), or 0 and the reciprocal root mean square or length (L2), of a head: of `size`
// columns of a row of x from `start` on.
//!include dense.glsl

void head_stats(int cols, int row, int start, int size, float epsilon, out float mean, out float factor) {
    // Deviations are taken from a value of the head, so that a common offset costs no digits.
//!if LAYER
    float shift = load1(src_x, cols, row, start);
//!else
    float shift = 0.0;
//!end
    float sum = 0.0;
    float squares = 0.0;
    for (int i = 0; i < size; i++) {
        float d = load1(src_x, cols, row, start + i) - shift;
        sum += d;
        squares += d * d;
    }
//!if LAYER
    float offset = sum / float(size);
    mean = shift + offset;
    float power = max(squares / float(size) - offset * offset, 0.0);
//!else
    mean = 0.0;
    float power = squares / float(size);
//!end
//!if L2
    factor = 1.0 / max(sqrt(squares), epsilon);
//!else
    factor = 1.0 / sqrt(power + epsilon);
//!end
}
