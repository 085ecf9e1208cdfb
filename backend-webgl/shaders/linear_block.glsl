// linear with several rows, pass 1: blocks of 4 rows, a target each, so that weights are decoded once for 4 rows.
#include "dense.glsl"
#include "group.glsl"

layout(location = 0) out vec4 row0;
layout(location = 1) out vec4 row1;
layout(location = 2) out vec4 row2;
layout(location = 3) out vec4 row3;

vec4 sum0 = vec4(0.0);
vec4 sum1 = vec4(0.0);
vec4 sum2 = vec4(0.0);
vec4 sum3 = vec4(0.0);

// Where the group of x begins in each of the rows.
ivec2 at0, at1, at2, at3;

// Adds the products of 4 columns of x with those of the fragment's weight rows.
void add(int i, vec4 a, vec4 b, vec4 c, vec4 d) {
    mat4 w = mat4(a, b, c, d);
    sum0 += group4(src_x, k, at0, i) * w;
    sum1 += group4(src_x, k, at1, i) * w;
    sum2 += group4(src_x, k, at2, i) * w;
    sum3 += group4(src_x, k, at3, i) * w;
}

void main() {
    int texel = fragment();
    int row_texels = (out_cols + LANES - 1) / LANES;
    int block = texel / row_texels;
    int col = (texel - block * row_texels) * LANES;
    if (block >= out_rows) discard;
    int groups = (k + 31) >> 5;
    int row = 4 * block;
    vec4 a0, a1, a2, a3, a4, a5, a6, a7;
    vec4 b0, b1, b2, b3, b4, b5, b6, b7;
    vec4 c0, c1, c2, c3, c4, c5, c6, c7;
    vec4 d0, d1, d2, d3, d4, d5, d6, d7;
#ifndef PACKED
    b0 = b1 = b2 = b3 = b4 = b5 = b6 = b7 = vec4(0.0);
    c0 = c1 = c2 = c3 = c4 = c5 = c6 = c7 = vec4(0.0);
    d0 = d1 = d2 = d3 = d4 = d5 = d6 = d7 = vec4(0.0);
#endif
    for (int group = 0; group < groups; group++) {
        decode32_a(col * groups_a + group, a0, a1, a2, a3, a4, a5, a6, a7);
#ifdef PACKED
        int last = out_cols - 1;
        decode32_a(min(col + 1, last) * groups_a + group, b0, b1, b2, b3, b4, b5, b6, b7);
        decode32_a(min(col + 2, last) * groups_a + group, c0, c1, c2, c3, c4, c5, c6, c7);
        decode32_a(min(col + 3, last) * groups_a + group, d0, d1, d2, d3, d4, d5, d6, d7);
#endif
        at0 = group_at(k, min(row, x_rows - 1), group);
        at1 = group_at(k, min(row + 1, x_rows - 1), group);
        at2 = group_at(k, min(row + 2, x_rows - 1), group);
        at3 = group_at(k, min(row + 3, x_rows - 1), group);
        add(0, a0, b0, c0, d0);
        add(1, a1, b1, c1, d1);
        add(2, a2, b2, c2, d2);
        add(3, a3, b3, c3, d3);
        add(4, a4, b4, c4, d4);
        add(5, a5, b5, c5, d5);
        add(6, a6, b6, c6, d6);
        add(7, a7, b7, c7, d7);
    }
    row0 = keep(sum0, col, out_cols);
    row1 = keep(sum1, col, out_cols);
    row2 = keep(sum2, col, out_cols);
    row3 = keep(sum3, col, out_cols);
}
