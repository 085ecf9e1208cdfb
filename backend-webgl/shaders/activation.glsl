// Elementwise functions. None overflows on the way to a finite result, and none relies on the precision of the
// built-in hyperbolic or circular functions, which is not specified.

vec4 act_none(vec4 x) {
    return x;
}

vec4 act_sigmoid(vec4 x) {
    vec4 e = exp(-abs(x));
    return mix(e, vec4(1.0), greaterThanEqual(x, vec4(0.0))) / (1.0 + e);
}

vec4 act_tanh(vec4 x) {
    vec4 e = exp(-2.0 * abs(x));
    vec4 s = x * x;
    // The quotient loses digits near zero; the series does not.
    vec4 near = x * (1.0 + s * (-1.0 / 3.0 + s * (2.0 / 15.0 - s * (17.0 / 315.0))));
    return mix(sign(x) * (1.0 - e) / (1.0 + e), near, lessThan(abs(x), vec4(0.1)));
}

// Abramowitz and Stegun, "Handbook of Mathematical Functions", 7.1.26; its error is below 1.5e-7. Near zero the
// Maclaurin series has the smaller relative error.
vec4 erf(vec4 x) {
    vec4 a = abs(x);
    vec4 t = 1.0 / (1.0 + 0.3275911 * a);
    vec4 p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    vec4 s = x * x;
    vec4 near = x * 1.1283791670955126 * (1.0 - s * (1.0 / 3.0 - s * (0.1 - s * (1.0 / 42.0 - s / 216.0))));
    return mix(sign(x) * (1.0 - p * exp(-min(s, 80.0))), near, lessThan(a, vec4(0.5)));
}

vec4 act_gelu_tanh(vec4 x) {
    vec4 c = clamp(x, -20.0, 20.0);
    return 0.5 * x * (1.0 + act_tanh(0.7978845608028654 * c * (1.0 + 0.044715 * c * c)));
}

vec4 act_gelu_erf(vec4 x) {
    return 0.5 * x * (1.0 + erf(x * 0.7071067811865476));
}

vec4 act_gelu_quick(vec4 x) {
    return x * act_sigmoid(1.702 * x);
}

vec4 act_silu(vec4 x) {
    return x * act_sigmoid(x);
}

vec4 act_relu(vec4 x) {
    return max(x, 0.0);
}

vec4 act_exp(vec4 x) {
    return exp(x);
}

vec4 act_log(vec4 x) {
    return log(x);
}

vec4 act_sqrt(vec4 x) {
    return sqrt(x);
}

// x minus a multiple of pi / 2 in three parts (Cody and Waite), then the Taylor polynomials of both functions.
void circle(vec4 x, out vec4 s, out vec4 c, out ivec4 quadrant) {
    vec4 n = floor(x * 0.6366197723675814 + 0.5);
    vec4 r = ((x - n * 1.5703125) - n * 4.8375129699707031e-4) - n * 7.5497899548918821e-8;
    vec4 z = r * r;
    s = r * (1.0 - z * (1.0 / 6.0 - z * (1.0 / 120.0 - z * (1.0 / 5040.0 - z / 362880.0))));
    c = 1.0 - z * (0.5 - z * (1.0 / 24.0 - z * (1.0 / 720.0 - z / 40320.0)));
    quadrant = ivec4(n) & 3;
}

vec4 act_sin(vec4 x) {
    vec4 s;
    vec4 c;
    ivec4 q;
    circle(x, s, c, q);
    vec4 v = mix(s, c, equal(q & 1, ivec4(1)));
    return mix(v, -v, greaterThanEqual(q, ivec4(2)));
}

vec4 act_cos(vec4 x) {
    vec4 s;
    vec4 c;
    ivec4 q;
    circle(x, s, c, q);
    vec4 v = mix(c, s, equal(q & 1, ivec4(1)));
    return mix(v, -v, equal((q + 1) & 2, ivec4(2)));
}

vec4 act_abs(vec4 x) {
    return abs(x);
}

vec4 act_neg(vec4 x) {
    return -x;
}

vec4 act_floor(vec4 x) {
    return floor(x);
}

vec4 act_ceil(vec4 x) {
    return ceil(x);
}

vec4 act_softplus(vec4 x) {
    return max(x, 0.0) + log(1.0 + exp(-abs(x)));
}

vec4 act_hardswish(vec4 x) {
    return x * clamp((x + 3.0) / 6.0, 0.0, 1.0);
}

vec4 act_sign(vec4 x) {
    return sign(x);
}

vec4 act_step(vec4 x) {
    return vec4(greaterThan(x, vec4(0.0)));
}

// Near zero the difference loses digits; the Maclaurin series does not.
vec4 act_expm1(vec4 x) {
    vec4 tail = x / 5.0 * (1.0 + x / 6.0 * (1.0 + x / 7.0 * (1.0 + x / 8.0)));
    vec4 near = x * (1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0 * (1.0 + tail))));
    return mix(exp(x) - 1.0, near, lessThan(abs(x), vec4(0.5)));
}

vec4 act_elu(vec4 x) {
    return mix(act_expm1(min(x, 0.0)), x, greaterThan(x, vec4(0.0)));
}

vec4 act_hardsigmoid(vec4 x) {
    return clamp((x + 3.0) / 6.0, 0.0, 1.0);
}

// Halves go away from zero, where drivers may choose in their own round.
vec4 act_round(vec4 x) {
    vec4 whole = trunc(x);
    return whole + sign(x) * vec4(greaterThanEqual(abs(x - whole), vec4(0.5)));
}

vec4 act_trunc(vec4 x) {
    return trunc(x);
}
