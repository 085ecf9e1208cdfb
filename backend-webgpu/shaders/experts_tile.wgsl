// Rows of x times the matrices of the experts that ids choose, gated or not, in tiles of up to 32 choices of one expert by 64
// weight rows, as linear_tile has them: so weights are unpacked once for all choices of a tile.
//!include lib/decode.wgsl
//!include lib/rows.wgsl
//!include lib/tile_float.wgsl
//!if GLU
//!function GATED
//!end

// What this invocation brings of a group: a row of weights, or in the second half of the workgroup half a row of x.
fn bring(lane: u32, w_row: u32, x_row: u32, g: u32) -> Brought {
    if (lane >= 64u) {
        return bring_x(x_row, g * 8u + (lane % 2u) * 4u);
    }
//!if GLU
    if (lane >= 32u) {
        return bring_u(w_row, g);
    }
//!end
    return bring_w(w_row, g);
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let wid = group_id + step.origin;
    let id = plan[3u * wid.y];
    let first = plan[3u * wid.y + 1u];
    let count = plan[3u * wid.y + 2u];
    if (count == 0u) {
        return;
    }
    let n0 = wid.x * (16u * COLUMNS);
    let col = min(n0 + lane % (16u * COLUMNS), p.cols - 1u);
    let x_row = choice(first + min((lane % 64u) / 2u, count - 1u)) / p.choices;
    // Rows of other chunks are computed as some row, and not stored.
    var w_row = p.w_start + id * p.w_stride + col;
    w_row = clamp(w_row, p.w_first, p.w_first + p.w_count - 1u) - p.w_first;
//!if GLU
    var u_row = p.u_start + id * p.u_stride + col;
    u_row = clamp(u_row, p.u_first, p.u_first + p.u_count - 1u) - p.u_first;
    w_row = select(w_row, u_row, lane >= 32u);
//!end
    let across = lane % 16u;
    let down = lane / 16u;
    var acc: array<vec4<f32>, 4>;
    var next = bring(lane, w_row, x_row, 0u);
    for (var g = 0u; g < p.w_groups; g++) {
        put(lane, next);
        if (g + 1u < p.w_groups) {
            next = bring(lane, w_row, x_row, g + 1u);
        }
        workgroupBarrier();
        multiply(across, down, &acc);
        workgroupBarrier();
    }
    // A copy may be indexed by a variable; the sums themselves stay in registers.
    var sums = acc;
    for (var r = 0u; r < 4u; r++) {
        if (down + 8u * r < count) {
            store(id, choice(first + down + 8u * r), n0 + across, sums[r]);
        }
    }
}

// The choice that is the i-th, expert by expert.
fn choice(i: u32) -> u32 {
    return plan[3u * p.tiles + i];
}

// Whether a column of an expert's matrix lies in these chunks.
fn is_here(id: u32, col: u32) -> bool {
//!if CHUNKED
    let w_row = p.w_start + id * p.w_stride + col;
    let here = w_row >= p.w_first && w_row < p.w_first + p.w_count;
//!if GLU
    let u_row = p.u_start + id * p.u_stride + col;
    return here && u_row >= p.u_first && u_row < p.u_first + p.u_count;
//!else
    return here;
//!end
//!else
    return true;
//!end
}

// Writes what was made of a choice in columns n, n + 16 and so on; for a GLU the last two are the up parts of the first two.
fn store(id: u32, at: u32, n: u32, made: vec4<f32>) {
    for (var c = 0u; c < COLUMNS; c++) {
        let col = n + 16u * c;
        if (col >= p.cols || !is_here(id, col)) {
            continue;
        }
//!if GLU
        var product = vec2<f32>(made[c], made[c + 2u]);
//!if BIAS
        let own = id * p.cols + col;
        product += vec2<f32>(bias[own], bias_up[own]);
//!end
        out[at * p.cols + col] = GATED(product.x, product.y);
//!else
        out[at * p.cols + col] = made[c];
//!end
    }
}
