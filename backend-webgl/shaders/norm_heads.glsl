// norm of heads, pass 2, with a GATE. Pass 1 has looked at whole heads.
//!include elements.glsl
//!if GATE
//!function ACT
//!end

float element(int row, int col) {
    int head = col / head_dim;
    int param = params == head_dim ? col - head * head_dim : col;
    float x = load1(src_x, out_cols, row, col) - raw_at(src_mean, row * heads + head);
    float v = x * raw_at(src_factor, row * heads + head) * load1(src_gamma, params, 0, param);
//!if LAYER
    v += load1(src_beta, params, 0, param);
//!end
//!if GATE
    v *= ACT(vec4(load1(src_z, z_cols, row, z_start + col))).x;
//!end
    return v;
}
