// Rows of x times a weight matrix, in tiles of 32 rows by 64 weight rows. A group of 32 inner elements at a time is
// unpacked into workgroup memory; each of the 128 invocations keeps 4 by 4 sums in registers. For a GLU the first 32
// weight rows of a tile are gates and the others the up parts of the same columns. The next group is on its way from
// memory while this one is multiplied.
//!include lib/decode.wgsl
//!include lib/unary.wgsl
//!if INT8
//!include lib/tile_int8.wgsl
//!else
//!include lib/tile_float.wgsl
//!end

// Elements 4 i .. 4 i + 3 of a row, zeros beyond its end.
fn x4(row: u32, i: u32) -> vec4<f32> {
//!if VEC4
    return select(vec4<f32>(0.0), x[row * (p.k / 4u) + min(i, p.k / 4u - 1u)], 4u * i < p.k);
//!else
    var out = vec4<f32>(0.0);
    for (var e = 0u; e < 4u; e++) {
        if (4u * i + e < p.k) {
            out[e] = x[row * p.k + 4u * i + e];
        }
    }
    return out;
//!end
}

// What this invocation brings of a group: a row of weights, or in the second half of the workgroup half a row of x.
fn bring(lane: u32, w_row: u32, col: u32, x_row: u32, g: u32) -> Brought {
    if (lane >= 64u) {
        return bring_x(x_row, g * 8u + (lane % 2u) * 4u);
    }
//!if GLU
    if (lane >= 32u) {
        return bring_u(p.u_row + col, g);
    }
//!end
    return bring_w(w_row + col, g);
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let n0 = wid.x * TILE_COLS;
    let m0 = wid.y * 32u;
    // Batches that are repeated in place: of B results and A matrices, result i uses matrix i * A / B.
    let outer = wid.z / p.out1;
    let inner = wid.z % p.out1;
    let x_first = ((outer * p.x0 / p.out0) * p.x1 + inner * p.x1 / p.out1) * p.m;
    let w_row = p.w_row + ((outer * p.b0 / p.out0) * p.b1 + inner * p.b1 / p.out1) * p.count;
    let w_col = min(n0 + lane % TILE_COLS, p.count - 1u);
    let x_row = x_first + min(m0 + (lane % 64u) / 2u, p.m - 1u);
    let tx = lane % 16u;
    let ty = lane / 16u;
    var acc: array<vec4<f32>, 4>;
    var next = bring(lane, w_row, w_col, x_row, 0u);
    for (var g = 0u; g < p.w_groups; g++) {
        put(lane, next);
        if (g + 1u < p.w_groups) {
            next = bring(lane, w_row, w_col, x_row, g + 1u);
        }
        workgroupBarrier();
        multiply(tx, ty, &acc);
        workgroupBarrier();
    }
    for (var r = 0u; r < 4u; r++) {
        let row = m0 + ty + 8u * r;
        if (row >= p.m) {
            continue;
        }
        let sums = acc[r];
        for (var c = 0u; c < TILE_COLS / 16u; c++) {
            let local = n0 + tx + 16u * c;
            if (local >= p.count) {
                continue;
            }
            let col = p.first + local;
            let at = (wid.z * p.m + row) * p.out_cols + col;
            var value = sums[c];
//!if GLU
            var upper = sums[c + 2u];
//!if BIAS
            value += bias[col];
            upper += bias[col + p.out_cols];
//!end
            value = ACT(value) * upper;
//!else
//!if BIAS
            value += bias[col];
//!end
            value = ACT(value);
//!end
//!if RESIDUAL
            value += residual[at];
//!end
            out[at] = value;
        }
    }
}
