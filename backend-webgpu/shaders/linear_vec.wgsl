// One row of x times a weight matrix. LANES invocations share a row of weights and WG / LANES rows a workgroup; each
// weight is read once.
//!include lib/decode.wgsl
//!include lib/unary.wgsl
//!include lib/row.wgsl
//!decoder w
//!if GLU
//!decoder u
//!end
const ROWS: u32 = WG / LANES;

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) wid: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let begun = row_begin(lane);
//!if SUMMED
    // Every workgroup has the sum; the first leaves it for others.
    for (var i = lane; wid.x + wid.y == 0u && 4u * i < p.k; i += WG) {
        total[i] = x4(i);
    }
//!end
    let row = (wid.y * groups.x + wid.x) * ROWS + lane / LANES;
    let local = min(row, p.count - 1u);
    let l = lane % LANES;
    // What follows the products is loaded before them: loads do not wait for loads.
    let col = p.first + local;
//!if BIAS
    let bias_value = bias[col];
//!if GLU
    let bias_up = bias[col + p.out_cols];
//!end
//!end
//!if RESIDUAL
    let residual_value = residual[col];
//!end
    var acc = SUM(0.0);
    for (var g = l; g < p.w_groups; g += LANES) {
        let x32 = row32(g, begun);
//!if GLU
        acc += vec2<f32>(dot32(w_decode_row(p.w_row + local, g), x32), dot32(u_decode_row(p.u_row + local, g), x32));
//!else
        acc += dot32(w_decode_row(p.w_row + local, g), x32);
//!end
    }
    let sum = lanes_begin(lane, acc);
    let scale = row_scale(lane, begun);
    if (l != 0u || row >= p.count) {
        return;
    }
    var product = lanes_end(lane, sum) * scale;
//!if GLU
//!if BIAS
    product += vec2<f32>(bias_value, bias_up);
//!end
    var value = ACT(product.x) * product.y;
//!else
//!if BIAS
    product += bias_value;
//!end
    var value = ACT(product);
//!end
//!if RESIDUAL
    value += residual_value;
//!end
    out[col] = value;
}
