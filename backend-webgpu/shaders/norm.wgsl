// Layer, RMS or L2 norm, with RESIDUAL added to something, with GATE gated, a workgroup a row. The variance is taken around
// the mean in a second pass, since the difference of squares would cancel.
//!if GATE
//!function ACT
//!end
//!if EPILOGUE
//!include lib/epilogue.wgsl
//!end
//!include lib/reduce.wgsl

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let row = wid.y * groups.x + wid.x;
    if (row >= p.rows) {
        return;
    }
    let first = row * p.cols;
    let param = first % p.params;
    var mean = 0.0;
//!if LAYER
    var sum = 0.0;
    for (var c = lane; c < p.cols; c += WG) {
        sum += x[first + c];
    }
    mean = workgroup_sum(lane, sum) / f32(p.cols);
//!end
    var squares = 0.0;
    for (var c = lane; c < p.cols; c += WG) {
        let value = x[first + c] - mean;
        squares += value * value;
    }
    let total = workgroup_sum(lane, squares);
//!if L2
    let scale = 1.0 / max(sqrt(total), p.eps);
//!else
    let scale = 1.0 / sqrt(total / f32(p.cols) + p.eps);
//!end
    for (var c = lane; c < p.cols; c += WG) {
        var value = (x[first + c] - mean) * scale * gamma[param + c];
//!if LAYER
        value += beta[param + c];
//!end
//!if RESIDUAL
        value += residual[first + c];
//!end
//!if GATE
        value *= ACT(Z[row / p.heads * p.z_cols + p.z_start + row % p.heads * p.cols + c]);
//!end
//!if EPILOGUE
        value = epilogue(value, row, c);
//!end
        out[first + c] = value;
    }
}
