// The columns of a decoded group that the fragment at `col` makes.

vec4 group_lanes(int col, vec4 w0, vec4 w1, vec4 w2, vec4 w3, vec4 w4, vec4 w5, vec4 w6, vec4 w7) {
    int at = (col >> 2) & 7;
    vec4 low = at < 2 ? (at == 0 ? w0 : w1) : (at == 2 ? w2 : w3);
    vec4 high = at < 6 ? (at == 4 ? w4 : w5) : (at == 6 ? w6 : w7);
    vec4 v = at < 4 ? low : high;
//!if !PACKED
    v.x = pick(v, col & 3);
//!end
    return v;
}
