// short_conv: sums over rows of the state and of x, with BIAS and ACT, and with gates before (GATE) and after them
// (GATE_OUT). With STATE the state's next rows instead: those before the step's last real one.
//!include frame.glsl
//!include columns.glsl
//!if !STATE
//!function ACT
//!end

// Rows of the state, then rows of x.
vec4 follow(int at, int col) {
    int before = taps - 1;
    if (at < before) return lanes(src_state, out_cols, at, col);
    vec4 x = column_lanes(src_x, x_cols, at - before, x_start + col);
//!if GATE
    x *= column_lanes(src_gate, gate_cols, at - before, gate_start + col);
//!end
    return x;
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
//!if BIAS
    sum += lanes(src_bias, out_cols, 0, col);
//!end
    sum = ACT(sum);
//!if GATE_OUT
    sum *= column_lanes(src_gate_out, gate_out_cols, row, gate_out_start + col);
//!end
    return sum;
}
//!end
