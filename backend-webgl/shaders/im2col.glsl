// im2col: what a kernel sees at each of its places, as rows.
//!include elements.glsl

float element(int row, int col) {
    int channel = col / (kernel0 * kernel1);
    int y = row / places1 % places0 * stride0 + col / kernel1 % kernel0 * dilation0 - before0;
    int x = row % places1 * stride1 + col % kernel1 * dilation1 - before1;
    if (y < 0 || y >= image0 || x < 0 || x >= image1) return 0.0;
    int plane = row / (places0 * places1) * channels + channel;
    return load1(src_x, image1, plane * image0 + y, x);
}
