// xielu: a parabola above zero, an exponential below, and a line for both.
//!include frame.glsl
//!include activation.glsl

vec4 value(int row, int col) {
    vec4 x = lanes(src_x, out_cols, row, col);
    vec4 above = positive * x * x;
    vec4 below = negative * (act_expm1(min(x, eps)) - x);
    return mix(below, above, greaterThan(x, vec4(0.0))) + linear * x;
}
