// linear (and matmul with packed weights): NORM, matmul, BIAS, ACT, GLU and RESIDUAL in one. With QKV the weights are
// those of queries, keys and values, each as wide as the result, and the results are a row of the K cache, a row of
// the V cache and the queries. With SLICED it makes the sums of slices of the columns, which blending adds up; with
// STACKED they are rows of their own, slice by slice, for `linear_sum`. With both SLICED and NORM `linear_join` applies
// the norm's factor: the sum of the squares that it follows from stands behind the products of a row.
//!include frame.glsl
//!include group.glsl
//!include epilogue.glsl
//!include norm_stats.glsl
//!include decode.glsl
//!decoder a

//!if SLICED
//!if STACKED
int slice;
//!else
flat in int slice;
//!end
//!end

// A group of the operand, and the sums of its halves.
vec4 x0, x1, x2, x3, x4, x5, x6, x7;
float sum_low, sum_high;

// Scales come after the sums: once for 16 weights.
float product(int weight_row, int group) {
    vec4 q0, q1, q2, q3, q4, q5, q6, q7, affine;
    a_levels32(min(weight_row, weight_rows - 1) * groups_a + group, q0, q1, q2, q3, q4, q5, q6, q7, affine);
    vec4 low = (q0 * x0 + q1 * x1) + (q2 * x2 + q3 * x3);
    vec4 high = (q4 * x4 + q5 * x5) + (q6 * x6 + q7 * x7);
    vec4 both = affine.x * low + affine.z * high;
    return total(both) + (affine.y * sum_low + affine.w * sum_high);
}

vec4 products(int col, int group) {
//!if PACKED
    return vec4(product(col, group), product(col + 1, group), product(col + 2, group), product(col + 3, group));
//!else
    return vec4(product(col, group), 0.0, 0.0, 0.0);
//!end
}

float norm_mean;
float norm_factor;
vec4 squares = vec4(0.0);

// Four columns of the operand's group, that begins at `at`, with the norm's weights from `norm_at`.
vec4 operand(ivec2 at, ivec2 norm_at, int i) {
    vec4 loaded = group4(src_x, k, at, i);
//!if NORM
    vec4 gamma = group4(src_gamma, k, norm_at, i);
//!if LAYER
    return (loaded - norm_mean) * norm_factor * gamma + group4(src_beta, k, norm_at, i);
//!else
    squares += loaded * loaded;
    return loaded * gamma;
//!end
//!else
    return loaded;
//!end
}

//!if QKV
vec4 values;
vec4 queries;

vec4 value2(int row, int col) {
    return values;
}

vec4 value3(int row, int col) {
    return queries;
}
//!end

vec4 value(int row, int col) {
//!if APPEND
    row -= append_first();
//!end
//!if STACKED
    slice = row / x_rows;
    row -= slice * x_rows;
//!end
//!if LAYER
    row_stats(k, row, eps, norm_mean, norm_factor);
//!end
    int groups = (k + 31) >> 5;
    vec4 sum = vec4(0.0);
//!if GLU || QKV
    vec4 second = vec4(0.0);
//!end
//!if QKV
    vec4 third = vec4(0.0);
//!end
    int first = 0;
//!if SLICED
    int width = (groups + slices - 1) / slices;
    first = slice * width;
    groups = min(first + width, groups);
//!end
    for (int group = first; group < groups; group++) {
        ivec2 at = group_at(k, row, group);
        ivec2 norm_at = group_at(k, 0, group);
        x0 = operand(at, norm_at, 0);
        x1 = operand(at, norm_at, 1);
        x2 = operand(at, norm_at, 2);
        x3 = operand(at, norm_at, 3);
        x4 = operand(at, norm_at, 4);
        x5 = operand(at, norm_at, 5);
        x6 = operand(at, norm_at, 6);
        x7 = operand(at, norm_at, 7);
        sum_low = total((x0 + x1) + (x2 + x3));
        sum_high = total((x4 + x5) + (x6 + x7));
        sum += products(col, group);
//!if GLU || QKV
        second += products(out_cols + col, group);
//!end
//!if QKV
        third += products(2 * out_cols + col, group);
//!end
    }
//!if NORM && !LAYER && !SLICED
    // The root mean square is a factor of the row: it may come after the sums.
    float factor = 1.0 / sqrt(total(squares) / float(k) + eps);
    sum *= factor;
//!if GLU || QKV
    second *= factor;
//!end
//!if QKV
    third *= factor;
//!end
//!end
//!if SLICED
//!if NORM
    if (col >= weight_rows) return vec4(total(squares), 0.0, 0.0, 0.0);
//!end
    // What is added once comes with the first slice.
    if (slice > 0) return sum;
//!end
//!if QKV
    queries = finish(row, col, sum, vec4(1.0));
    values = finish(row, 2 * out_cols + col, third, vec4(1.0));
    return finish(row, out_cols + col, second, vec4(1.0));
//!else
//!if GLU
    return finish(row, col, sum, second);
//!else
    return finish(row, col, sum, vec4(1.0));
//!end
//!end
}
