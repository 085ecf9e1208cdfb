// linear with several rows, pass 1: blocks of rows, so that weights are decoded once for all rows of one. With DENSE
// matmul of dense operands, whose batches repeat in place.
//!include dense.glsl
//!include group.glsl
//!include block.glsl
//!if !DENSE
//!include decode.glsl
//!decoder a
//!end

// The target of each row, its sum, and where its group of x begins.
#define DECLARE(i, row, sum, at) layout(location = i) out TEXEL row; vec4 sum = vec4(0.0); ivec2 at;
#define FIND(i, row, sum, at) at = group_at(k, x_first + min(block + i * apart, x_rows - 1), group);
#define ADD(j, row, sum, at) sum += group4(src_x, k, at, i) * w;
#define KEEP(i, row, sum, at) row = texel_of(keep(sum, col, weight_rows));

EACH(DECLARE)

// Adds the products of 4 columns of x with those of the fragment's weight rows.
void add(int i, vec4 a, vec4 b, vec4 c, vec4 d) {
    mat4 w = mat4(a, b, c, d);
    EACH(ADD)
}

//!if DENSE
// The same with the columns of a dense operand, of which wa and so on are rows.
//!if PACKED
#define WEIGHTS(row, i) group4(src_w, k, row, i)
#define ADD_DENSE(i) add(i, WEIGHTS(wa, i), WEIGHTS(wb, i), WEIGHTS(wc, i), WEIGHTS(wd, i));
//!else
#define ADD_DENSE(i) add(i, group4(src_w, k, wa, i), vec4(0.0), vec4(0.0), vec4(0.0));
//!end

//!end
void main() {
    ivec2 place = block_of(fragment());
    int block = place.x;
    int col = place.y * LANES;
    if (col >= weight_rows) discard;
    int groups = (k + 31) >> 5;
//!if DENSE
    int matrix = block / apart;
    block -= matrix * apart;
    int i0 = matrix / dim1;
    int i1 = matrix - i0 * dim1;
    int x_first = (i0 * a0 / dim0 * a1 + i1 * a1 / dim1) * x_rows;
    int w_first = (i0 * b0 / dim0 * b1 + i1 * b1 / dim1) * weight_rows;
    int w_last = w_first + weight_rows - 1;
    for (int group = 0; group < groups; group++) {
        ivec2 wa = group_at(k, w_first + col, group);
//!if PACKED
        ivec2 wb = group_at(k, min(w_first + col + 1, w_last), group);
        ivec2 wc = group_at(k, min(w_first + col + 2, w_last), group);
        ivec2 wd = group_at(k, min(w_first + col + 3, w_last), group);
//!end
        EACH(FIND)
        ADD_DENSE(0)
        ADD_DENSE(1)
        ADD_DENSE(2)
        ADD_DENSE(3)
        ADD_DENSE(4)
        ADD_DENSE(5)
        ADD_DENSE(6)
        ADD_DENSE(7)
    }
//!else
    const int x_first = 0;
    vec4 a0, a1, a2, a3, a4, a5, a6, a7;
    vec4 b0, b1, b2, b3, b4, b5, b6, b7;
    vec4 c0, c1, c2, c3, c4, c5, c6, c7;
    vec4 d0, d1, d2, d3, d4, d5, d6, d7;
//!if !PACKED
    b0 = b1 = b2 = b3 = b4 = b5 = b6 = b7 = vec4(0.0);
    c0 = c1 = c2 = c3 = c4 = c5 = c6 = c7 = vec4(0.0);
    d0 = d1 = d2 = d3 = d4 = d5 = d6 = d7 = vec4(0.0);
//!end
    for (int group = 0; group < groups; group++) {
        a_decode32(col * groups_a + group, a0, a1, a2, a3, a4, a5, a6, a7);
//!if PACKED
        int last = weight_rows - 1;
        a_decode32(min(col + 1, last) * groups_a + group, b0, b1, b2, b3, b4, b5, b6, b7);
        a_decode32(min(col + 2, last) * groups_a + group, c0, c1, c2, c3, c4, c5, c6, c7);
        a_decode32(min(col + 3, last) * groups_a + group, d0, d1, d2, d3, d4, d5, d6, d7);
//!end
        EACH(FIND)
        add(0, a0, b0, c0, d0);
        add(1, a1, b1, c1, d1);
        add(2, a2, b2, c2, d2);
        add(3, a3, b3, c3, d3);
        add(4, a4, b4, c4, d4);
        add(5, a5, b5, c5, d5);
        add(6, a6, b6, c6, d6);
        add(7, a7, b7, c7, d7);
    }
//!end
    EACH(KEEP)
}
