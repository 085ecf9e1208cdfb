// cumsum, pass 2: the chunks before an element, and those of its own chunk up to it.
//!include frame.glsl

vec4 value(int row, int col) {
    int which = col / chunk;
    float before = 0.0;
    for (int i = 0; i < which; i++) {
        before += raw_at(src_sums, row * chunks + i);
    }
    float own = 0.0;
    for (int at = which * chunk; at < col; at++) {
        own += load1(src_x, out_cols, row, at);
    }
    vec4 sum = lanes(src_x, out_cols, row, col);
    sum.x += own;
    sum.y += sum.x;
    sum.z += sum.y;
    sum.w += sum.z;
    return before + sum;
}
