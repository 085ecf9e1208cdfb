// The numbers of a group of trits: 0 stands for -1.
void levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    affine = scales(group).x * vec4(1.0, -1.0, 1.0, -1.0);
    q0 = digits(group, 0);
    q1 = digits(group, 1);
    q2 = digits(group, 2);
    q3 = digits(group, 3);
    q4 = digits(group, 4);
    q5 = digits(group, 5);
    q6 = digits(group, 6);
    q7 = digits(group, 7);
}
