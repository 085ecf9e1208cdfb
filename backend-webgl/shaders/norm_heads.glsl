// norm of heads, pass 2. Pass 1 has looked at whole heads.
//!include elements.glsl

float element(int row, int col) {
    int head = col / head_dim;
    int channel = col - head * head_dim;
    float x = load1(src_x, out_cols, row, col) - raw_at(src_mean, row * heads + head);
    float v = x * raw_at(src_factor, row * heads + head) * load1(src_gamma, head_dim, 0, channel);
//!if LAYER
    v += load1(src_beta, head_dim, 0, channel);
//!end
    return v;
}
