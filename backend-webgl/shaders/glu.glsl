// glu: gate and up, joined.
//!include frame.glsl
//!include gated.glsl

vec4 value(int row, int col) {
    return gated(lanes(src_gate, out_cols, row, col), lanes(src_up, out_cols, row, col));
}
