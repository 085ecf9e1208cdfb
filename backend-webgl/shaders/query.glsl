// Four neighbouring channels of a query head: with NORM normed, with ROPE rotated, with ROPE_PART only the first n_dims
// channels of a head. Heads are the first columns of rows that are q_cols wide; with Q_AT_POSITION they are the rows
// from the step's position on.

vec4 normed4(int row, int head, int c4) {
    vec4 x = load4(src_q, q_cols, row, head * (head_dim >> 2) + c4);
//!if NORM
//!if NORM_WHOLE
    x *= raw_at(src_factors, row * normed_heads) * load4(src_gamma, q_cols, 0, head * (head_dim >> 2) + c4);
//!else
    x *= raw_at(src_factors, row * normed_heads + head) * load4(src_gamma, head_dim, 0, c4);
//!end
//!end
    return x;
}

vec4 query4(int row, int head, int c4) {
    int position = int(step_position) + row;
//!if Q_AT_POSITION
    row = position;
//!end
    vec4 x = normed4(row, head, c4);
//!if ROPE
//!if ROPE_PART
    if (4 * c4 >= n_dims) return x;
//!end
    int angles = min(position, table_rows - 1);
//!if NEOX
    int half4 = n_dims >> 3;
    bool first = c4 < half4;
    int pairs = first ? c4 : c4 - half4;
    vec4 partner = normed4(row, head, first ? c4 + half4 : c4 - half4);
    vec4 a = load4(src_table, n_dims, angles, 2 * pairs);
    vec4 b = load4(src_table, n_dims, angles, 2 * pairs + 1);
    vec4 turned = partner * vec4(a.yw, b.yw);
    return x * vec4(a.xz, b.xz) + (first ? -turned : turned);
//!else
    vec4 angle = load4(src_table, n_dims, angles, c4);
    return x * angle.xxzz + vec4(-x.y, x.x, -x.w, x.z) * angle.yyww;
//!end
//!else
    return x;
//!end
}
