// The products of a token's experts, added up with their weights: LANES invocations for each column of the result.
//!include lib/decode.wgsl
//!include lib/experts.wgsl
//!include lib/row.wgsl
//!decoder w
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let wid = group_id + step.origin;
    let token = wid.y;
    let col = wid.x * (WG / LANES) + lane / LANES;
    let own = min(col, p.cols - 1u);
    let l = lane % LANES;
    let begun = vec2<f32>(0.0);
    var acc = 0.0;
    for (var choice = token * p.choices; choice < (token + 1u) * p.choices; choice++) {
        x_row = choice;
//!if STAGED
        // The row before is still being read.
        workgroupBarrier();
//!end
        let id = expert(choice);
        let w_row = p.w_start + id * p.w_stride + own;
        var product = 0.0;
        for (var first = 0u; first < p.w_groups; first += CHUNK) {
            row_stage(lane, first, begun);
            let end = min(first + CHUNK, p.w_groups);
            for (var g = first + l; g < end; g += LANES) {
                product += dot32(w_decode_row(w_row, g), row32(g, first, begun));
            }
        }
//!if BIAS
        product += select(0.0, bias[id * p.cols + own], l == 0u);
//!end
        acc += shares[choice] * product;
    }
    let sum = lanes_begin(lane, acc);
    lanes_meet();
    if (l != 0u || col >= p.cols) {
        return;
    }
    var value = lanes_end(lane, sum);
//!if RESIDUAL
    value += residual[token * p.cols + col];
//!end
    out[token * p.cols + col] = value;
}
