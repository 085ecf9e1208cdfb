// linear with several rows, pass 1: blocks of rows, so that weights are decoded once for all rows of one.
//!include dense.glsl
//!include group.glsl
//!include block.glsl
//!include decode.glsl
//!decoder a

// The target of each row, its sum, and where its group of x begins.
#define DECLARE(i, row, sum, at) layout(location = i) out TEXEL row; vec4 sum = vec4(0.0); ivec2 at;
#define FIND(i, row, sum, at) at = group_at(k, min(block + i * blocks, x_rows - 1), group);
#define ADD(j, row, sum, at) sum += group4(src_x, k, at, i) * w;
#define KEEP(i, row, sum, at) row = texel_of(keep(sum, col, weight_rows));

EACH(DECLARE)

// Adds the products of 4 columns of x with those of the fragment's weight rows.
void add(int i, vec4 a, vec4 b, vec4 c, vec4 d) {
    mat4 w = mat4(a, b, c, d);
    EACH(ADD)
}

void main() {
    ivec2 place = block_of(fragment());
    int block = place.x;
    int col = place.y * LANES;
    if (col >= weight_rows) discard;
    int groups = (k + 31) >> 5;
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
    EACH(KEEP)
}
