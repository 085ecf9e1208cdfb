// What kernels of experts share: whose matrix a choice means, and the products with it.
//!include group.glsl
//!include decode.glsl

int expert(int row, int choice) {
//!if IN_TURN
    return choice;
//!else
    return clamp(int(load1(src_ids, choices, row, choice)), 0, experts - 1);
//!end
}

// A group of the operand, and the sums of its halves.
vec4 x0, x1, x2, x3, x4, x5, x6, x7;
float sum_low, sum_high;

//!if NORM
vec4 squares = vec4(0.0);
//!end

// Four columns of the operand's group, that begins at `at`, with the norm's weights from `norm_at`.
vec4 operand(ivec2 at, ivec2 norm_at, int i) {
    vec4 four = group4(src_x, k, at, i);
//!if NORM
    squares += four * four;
    return four * group4(src_gamma, k, norm_at, i);
//!else
    return four;
//!end
}

void look_at(int x_row, int group) {
    ivec2 at = group_at(k, x_row, group);
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
}

// The product with what a decoder gave. Scales come after the sums: once for 16 weights.
#define PRODUCT(result, levels, group) \
    levels(group, q0, q1, q2, q3, q4, q5, q6, q7, affine); \
    result = total( \
        affine.x * ((x0 * q0 + x1 * q1) + (x2 * q2 + x3 * q3)) + \
        affine.z * ((x4 * q4 + x5 * q5) + (x6 * q6 + x7 * q7)) \
    ) + (affine.y * sum_low + affine.w * sum_high);

//!decoder a
// The products with the rows of the first weights from `first` on, `own` of a matrix's `rows`.
float product_a(int weight_row, int group) {
    vec4 q0, q1, q2, q3, q4, q5, q6, q7, affine;
    float result;
    PRODUCT(result, a_levels32, weight_row * groups_a + group)
    return result;
}

vec4 products_a(int first, int own, int rows, int group) {
    vec4 products = vec4(product_a(first + own, group), 0.0, 0.0, 0.0);
//!if PACKED
    int last = rows - 1;
    products.y = product_a(first + min(own + 1, last), group);
    products.z = product_a(first + min(own + 2, last), group);
    products.w = product_a(first + min(own + 3, last), group);
//!end
    return products;
}
//!if GLU

//!decoder b
float product_b(int weight_row, int group) {
    vec4 q0, q1, q2, q3, q4, q5, q6, q7, affine;
    float result;
    PRODUCT(result, b_levels32, weight_row * groups_b + group)
    return result;
}

vec4 products_b(int first, int own, int rows, int group) {
    vec4 products = vec4(product_b(first + own, group), 0.0, 0.0, 0.0);
//!if PACKED
    int last = rows - 1;
    products.y = product_b(first + min(own + 1, last), group);
    products.z = product_b(first + min(own + 2, last), group);
    products.w = product_b(first + min(own + 3, last), group);
//!end
    return products;
}
//!end
