// elementwise: what RESULT says of the elements that belong to those of the fragment, after LINES. VIEWS finds them.
//!include frame.glsl
//!include place.glsl

VIEWS
vec4 value(int row, int col) {
LINES
    vec4 made = RESULT;
    return made;
}
