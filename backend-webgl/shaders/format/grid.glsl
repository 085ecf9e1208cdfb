// The numbers of a group of a grid.
void levels32(
    int group, out vec4 q0, out vec4 q1, out vec4 q2, out vec4 q3, out vec4 q4, out vec4 q5, out vec4 q6, out vec4 q7,
    out vec4 affine
) {
    uvec4 f = fields(group);
    vec2 s = scales(group, f);
    // No products with 0: of infinity that is no number.
    affine = vec4(s.x, 0.0, s.y, 0.0);
    eight(f, 0, q0, q1);
    eight(f, 1, q2, q3);
    eight(f, 2, q4, q5);
    eight(f, 3, q6, q7);
}
