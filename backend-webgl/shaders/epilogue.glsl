// What follows a matmul: BIAS, ACT, GLU (by `up`), RESIDUAL, and with EPILOGUE more.
//!function ACT
//!if EPILOGUE
//!include following.glsl
//!end

vec4 finish(int row, int col, vec4 sum, vec4 up) {
//!if BIAS
    sum += lanes(src_bias, weight_rows, 0, col);
//!end
    sum = ACT(sum);
//!if GLU
//!if BIAS
    up.x += load1(src_bias, weight_rows, 0, out_cols + col);
//!if PACKED
    // The second half need not begin at a whole texel.
    int last = weight_rows - 1;
    up.y += load1(src_bias, weight_rows, 0, min(out_cols + col + 1, last));
    up.z += load1(src_bias, weight_rows, 0, min(out_cols + col + 2, last));
    up.w += load1(src_bias, weight_rows, 0, min(out_cols + col + 3, last));
//!end
//!end
    sum *= up;
//!end
//!if RESIDUAL
    sum += lanes(src_residual, out_cols, row, col);
//!end
//!if EPILOGUE
    sum = following(sum, row, col);
//!end
    return sum;
}
