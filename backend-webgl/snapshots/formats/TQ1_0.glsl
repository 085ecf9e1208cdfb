vec4 a_scales(int group) {
    float d = weight_half(plane1_a, group >> 3);
    return vec4(d, 0.0, d, 0.0);
}


vec4 a_digits(int group, int i) {
    int quad = (group & 7) * 8 + i;
    bool late = quad >= 60;
    bool middle = quad >= 40;
    int word = late ? 12 : middle ? 8 + (quad & 3) : quad & 7;
    int n = late ? quad - 60 : middle ? (quad - 40) >> 2 : quad >> 3;
    uint power = ((n & 1) != 0 ? 3u : 1u) * ((n & 2) != 0 ? 9u : 1u) * (n == 4 ? 81u : 1u);
    uvec4 bytes = (uvec4(weight_word(plane0_a, 13 * (group >> 3) + word)) >> uvec4(0, 8, 16, 24)) & 255u;
    return vec4((((bytes * power) & 255u) * 3u) >> 8);
}

void a_levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    affine = a_scales(group).x * vec4(1.0, -1.0, 1.0, -1.0);
    q0 = a_digits(group, 0);
    q1 = a_digits(group, 1);
    q2 = a_digits(group, 2);
    q3 = a_digits(group, 3);
    q4 = a_digits(group, 4);
    q5 = a_digits(group, 5);
    q6 = a_digits(group, 6);
    q7 = a_digits(group, 7);
}
