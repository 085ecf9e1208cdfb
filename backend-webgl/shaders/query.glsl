// Four neighbouring channels of a query head, rotated with ROPE; with ROPE_PART only the first n_dims channels of a
// head are. Heads are the first columns of rows that are q_cols wide; with Q_AT_POSITION they are the rows from the
// step's position on.

vec4 query4(int row, int head, int c4) {
    int position = int(step_position) + row;
#ifdef Q_AT_POSITION
    row = position;
#endif
    int at = head * (head_dim >> 2) + c4;
    vec4 x = load4(src_q, q_cols, row, at);
#ifdef ROPE
#ifdef ROPE_PART
    if (4 * c4 >= n_dims) return x;
#endif
    int angles = min(position, table_rows - 1);
#ifdef NEOX
    int half4 = n_dims >> 3;
    bool first = c4 < half4;
    int pairs = first ? c4 : c4 - half4;
    vec4 partner = load4(src_q, q_cols, row, first ? at + half4 : at - half4);
    vec4 a = load4(src_table, n_dims, angles, 2 * pairs);
    vec4 b = load4(src_table, n_dims, angles, 2 * pairs + 1);
    vec4 turned = partner * vec4(a.yw, b.yw);
    return x * vec4(a.xz, b.xz) + (first ? -turned : turned);
#else
    vec4 angle = load4(src_table, n_dims, angles, c4);
    return x * angle.xxzz + vec4(-x.y, x.x, -x.w, x.z) * angle.yyww;
#endif
#else
    return x;
#endif
}
