// glu: ACT(gate) * up.
//!include frame.glsl
//!include activation.glsl

vec4 value(int row, int col) {
    return ACT(lanes(src_gate, out_cols, row, col)) * lanes(src_up, out_cols, row, col);
}
