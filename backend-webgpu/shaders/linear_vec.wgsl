// One row of x, or a few, times a weight matrix. LANES invocations share COLUMNS columns of the result, and what they load
// of x serves the weights of all of them. Each weight is read once, for all rows; each row's sums are added up in the same
// order whatever the rows beside it.
//!include lib/decode.wgsl
//!function ACT
//!if EPILOGUE
//!include lib/epilogue.wgsl
//!end
//!if SEVERAL
//!include lib/few.wgsl
//!else
//!include lib/row.wgsl
//!end
//!decoder w
//!if GLU
//!decoder u
//!end

// What follows the products of a column: biases and what the result is added to.
struct Rest {
    bias: f32,
    bias_up: f32,
    residual: f32,
}

fn rest_of(row: u32, col: u32) -> Rest {
    var rest: Rest;
//!if BIAS
    rest.bias = bias[col];
//!if GLU
    rest.bias_up = bias[col + p.out_cols];
//!end
//!end
//!if RESIDUAL
    rest.residual = residual[row * p.out_cols + col];
//!end
    return rest;
}

// One of the columns, from the products of all of an invocation's.
fn ended(products: SUM, own: u32, rest: Rest) -> f32 {
//!if GLU
    var value = ACT(products[own] + rest.bias) * (products[own + COLUMNS] + rest.bias_up);
//!else
//!if TWO || FOUR
    var value = ACT(products[own] + rest.bias);
//!else
    var value = ACT(products + rest.bias);
//!end
//!end
    return value + rest.residual;
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
//!if !SEVERAL
    let begun = row_begin(lane);
//!if SUMMED
    // Every workgroup has the sum; the first leaves it for others.
    for (var i = lane; wid.x + wid.y == 0u && 4u * i < p.k; i += WG) {
        total[i] = x4(i);
    }
//!end
//!end
    let n = ((wid.y * groups.x + wid.x) * (WG / LANES) + lane / LANES) * COLUMNS;
    let last = p.count - 1u;
    let l = lane % LANES;
//!if !SEVERAL
    // One of the columns is this invocation's to end. What follows the products is loaded before them: loads do not wait
    // for loads.
    let own = l % COLUMNS;
    let col = p.first + min(n + own, last);
    let rest = rest_of(0u, col);
//!end
//!if SEVERAL
    let first_row = few_first(wid.z);
    var acc: array<SUM, ROWS>;
    for (var g = l; g < p.w_groups; g += LANES) {
        let a = w_decode_row(p.w_row + min(n, last), g);
//!if TWO || FOUR
        let b = w_decode_row(p.w_row + min(n + 1u, last), g);
//!end
//!if FOUR
        let c = w_decode_row(p.w_row + min(n + 2u, last), g);
        let d = w_decode_row(p.w_row + min(n + 3u, last), g);
//!end
//!if GLU
        let up = u_decode_row(p.u_row + min(n, last), g);
//!if TWO
        let up_b = u_decode_row(p.u_row + min(n + 1u, last), g);
//!end
//!end
//!each ROW
        {
            let x32 = ready32(first_row + ROW, g);
//!if GLU
//!if TWO
            acc[ROW] += vec4<f32>(dot32(a, x32), dot32(b, x32), dot32(up, x32), dot32(up_b, x32));
//!else
            acc[ROW] += vec2<f32>(dot32(a, x32), dot32(up, x32));
//!end
//!else
//!if FOUR
            acc[ROW] += vec4<f32>(dot32(a, x32), dot32(b, x32), dot32(c, x32), dot32(d, x32));
//!else
//!if TWO
            acc[ROW] += vec2<f32>(dot32(a, x32), dot32(b, x32));
//!else
            acc[ROW] += dot32(a, x32);
//!end
//!end
//!end
        }
//!end
    }
//!else
    var acc = SUM(0.0);
    for (var first = 0u; first < p.w_groups; first += CHUNK) {
        row_stage(lane, first, begun);
        let end = min(first + CHUNK, p.w_groups);
        for (var g = first + l; g < end; g += LANES) {
            let x32 = row32(g, first, begun);
            let a = dot32(w_decode_row(p.w_row + min(n, last), g), x32);
//!if TWO || FOUR
            let b = dot32(w_decode_row(p.w_row + min(n + 1u, last), g), x32);
//!end
//!if GLU
            let up = dot32(u_decode_row(p.u_row + min(n, last), g), x32);
//!if TWO
            acc += vec4<f32>(a, b, up, dot32(u_decode_row(p.u_row + min(n + 1u, last), g), x32));
//!else
            acc += vec2<f32>(a, up);
//!end
//!else
//!if FOUR
            let c = dot32(w_decode_row(p.w_row + min(n + 2u, last), g), x32);
            acc += vec4<f32>(a, b, c, dot32(w_decode_row(p.w_row + min(n + 3u, last), g), x32));
//!else
//!if TWO
            acc += vec2<f32>(a, b);
//!else
            acc += a;
//!end
//!end
//!end
        }
    }
//!end
//!if SEVERAL
//!each ROW
    few_leave(lane, ROW, acc[ROW]);
//!end
    workgroupBarrier();
    for (var i = l; i < ROWS * COLUMNS; i += LANES) {
        let row = i / COLUMNS;
        let own = i % COLUMNS;
        if (n + own <= last) {
            let col = p.first + n + own;
            let at = first_row + row;
            var value = ended(few_sum(lane, row) * x[scale_at(at)].x, own, rest_of(at, col));
//!if EPILOGUE
            value = epilogue(value, at, col);
//!end
            out[at * p.out_cols + col] = value;
        }
    }
//!else
    let sum = lanes_begin(lane, acc);
    let scale = row_scale(lane, begun);
    if (l < COLUMNS && n + l <= last) {
        var value = ended(lanes_end(lane, sum) * scale, own, rest);
//!if EPILOGUE
        value = epilogue(value, 0u, col);
//!end
        out[col] = value;
    }
//!end
}
