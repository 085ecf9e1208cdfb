// Rows of x times the matrices of the experts that ids choose, gated or not: a row of the result for each choice, LANES
// invocations for each of its columns.
//!include lib/decode.wgsl
//!include lib/experts.wgsl
//!include lib/row.wgsl
//!if GLU
//!function GATED
//!end
//!decoder w
//!if GLU
//!decoder u
//!end
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let wid = group_id + step.origin;
    let choice = wid.y;
    x_row = choice / p.choices;
    let begun = row_begin(lane);
    let col = wid.x * (WG / LANES) + lane / LANES;
    let own = min(col, p.cols - 1u);
    let l = lane % LANES;
    let id = expert(choice);
    var w_row = p.w_start + id * p.w_stride + own;
//!if GLU
    var u_row = p.u_start + id * p.u_stride + own;
//!end
    var w_end = p.w_groups;
//!if CHUNKED
    var here = w_row >= p.w_first && w_row < p.w_first + p.w_count;
    w_row -= p.w_first;
//!if GLU
    here = here && u_row >= p.u_first && u_row < p.u_first + p.u_count;
    u_row -= p.u_first;
//!end
    w_end = select(0u, w_end, here);
//!end
    var acc = SUM(0.0);
    for (var first = 0u; first < p.w_groups; first += CHUNK) {
        row_stage(lane, first, begun);
        let end = min(first + CHUNK, w_end);
        for (var g = first + l; g < end; g += LANES) {
            let x32 = row32(g, first, begun);
//!if GLU
            acc += vec2<f32>(dot32(w_decode_row(w_row, g), x32), dot32(u_decode_row(u_row, g), x32));
//!else
            acc += dot32(w_decode_row(w_row, g), x32);
//!end
        }
    }
    let sum = lanes_begin(lane, acc);
    let scale = row_scale(lane, begun);
    if (l != 0u || col >= p.cols) {
        return;
    }
//!if CHUNKED
    if (!here) {
        return;
    }
//!end
    var product = lanes_end(lane, sum) * scale;
//!if GLU
//!if BIAS
    product += vec2<f32>(bias[id * p.cols + col], bias_up[id * p.cols + col]);
//!end
    out[choice * p.cols + col] = GATED(product.x, product.y);
//!else
    out[choice * p.cols + col] = product;
//!end
}
