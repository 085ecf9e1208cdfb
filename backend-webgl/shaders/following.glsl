// What follows a result: RESULT after LINES. VIEWS finds the elements of other operands.
//!include place.glsl

VIEWS
vec4 following(vec4 made, int row, int col) {
LINES
    vec4 followed = RESULT;
    return followed;
}
