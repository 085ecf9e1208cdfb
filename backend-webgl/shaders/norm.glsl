// norm: LAYER, RMS or L2 norm of each row, with RESIDUAL added to something, with EPILOGUE more. With ROWS pass 1 has
// looked at whole rows.
//!include frame.glsl
//!include norm_stats.glsl
//!if EPILOGUE
//!include following.glsl
//!end

vec4 value(int row, int col) {
//!if ROWS
    float mean = raw_at(src_mean, row);
    float factor = raw_at(src_factor, row);
//!else
    float mean;
    float factor;
    row_stats(out_cols, row, eps, mean, factor);
//!end
    vec4 v = (lanes(src_x, out_cols, row, col) - mean) * factor * lanes(src_gamma, out_cols, 0, col);
//!if LAYER
    v += lanes(src_beta, out_cols, 0, col);
//!end
//!if RESIDUAL
    v += lanes(src_residual, out_cols, row, col);
//!end
//!if EPILOGUE
    v = following(v, row, col);
//!end
    return v;
}
