// short_conv: sums over rows of the state and of x. With STATE the state's next rows instead: those before the step's
// last real one.
//!include frame.glsl

// Rows of the state, then rows of x.
vec4 follow(int at, int col) {
    int before = taps - 1;
    return at < before ? lanes(src_state, out_cols, at, col) : lanes(src_x, out_cols, at - before, col);
}

//!if STATE
vec4 value(int row, int col) {
    return follow(row + min(int(step_rows), x_rows), col);
}
//!else
float tap(int channel, int j) {
    return load1(src_kernel, taps, min(channel, out_cols - 1), j);
}

vec4 value(int row, int col) {
    vec4 sum = vec4(0.0);
    for (int j = 0; j < taps; j++) {
        vec4 weights = vec4(tap(col, j), 0.0, 0.0, 0.0);
//!if PACKED
        weights.yzw = vec3(tap(col + 1, j), tap(col + 2, j), tap(col + 3, j));
//!end
        sum += weights * follow(row + j, col);
    }
    return sum;
}
//!end
