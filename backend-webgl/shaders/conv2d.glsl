// conv2d: a convolution of images.
//!include frame.glsl

// The pixels of a row at some columns; those outside are 0.
vec4 pixels(int row, ivec4 at) {
    ivec4 cols = clamp(at, 0, image1 - 1);
    vec4 v = vec4(load1(src_x, image1, row, cols.x), 0.0, 0.0, 0.0);
//!if PACKED
    v.y = load1(src_x, image1, row, cols.y);
    v.z = load1(src_x, image1, row, cols.z);
    v.w = load1(src_x, image1, row, cols.w);
//!end
    return mix(vec4(0.0), v, equal(at, cols));
}

vec4 value(int row, int col) {
    int result = row / places0 % results;
    int plane = row / places0 / results * channels + result / of_group * own;
    int taps = kernel0 * kernel1;
    vec4 sum = vec4(0.0);
    for (int tap = 0; tap < taps; tap++) {
        int down = tap / kernel1;
        int across = tap - down * kernel1;
        int y = row % places0 * stride0 + down * dilation0 - before0;
        ivec4 x = (col + ivec4(0, 1, 2, 3)) * stride1 + across * dilation1 - before1;
        if (y >= 0 && y < image0) {
            for (int channel = 0; channel < own; channel++) {
                float factor = load1(src_kernel, kernel1, (result * own + channel) * kernel0 + down, across);
                sum += factor * pixels((plane + channel) * image0 + y, x);
            }
        }
    }
    return sum;
}
