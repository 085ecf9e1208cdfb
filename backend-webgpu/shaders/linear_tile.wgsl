// Rows of x times a weight matrix, in tiles of 32 rows by 64 weight rows. A group of 32 inner elements at a time is
// decoded into workgroup memory; each of the 128 invocations keeps 4 by 4 sums in registers. For a GLU the first 32
// weight rows of a tile are gates and the others the up parts of the same columns.
//!include lib/decode.wgsl
//!include lib/unary.wgsl
//!decoder w
//!if GLU
//!decoder u
//!end
// Rows of 8 texels, padded to 9 against bank conflicts.
var<workgroup> tile_x: array<vec4<f32>, 288>;
var<workgroup> tile_w: array<vec4<f32>, 576>;

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

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let n0 = wid.x * TILE_COLS;
    let m0 = wid.y * 32u;
    // Batches that are repeated in place: of B results and A matrices, result i uses matrix i * A / B.
    let outer = wid.z / p.out1;
    let inner = wid.z % p.out1;
    let x_row = ((outer * p.x0 / p.out0) * p.x1 + inner * p.x1 / p.out1) * p.m;
    let w_row = p.w_row + ((outer * p.b0 / p.out0) * p.b1 + inner * p.b1 / p.out1) * p.count;
    let tx = lane % 16u;
    let ty = lane / 16u;
    var acc: array<vec4<f32>, 4>;
    for (var g = 0u; g < p.w_groups; g++) {
        if (lane < 64u) {
            let col = min(n0 + lane % TILE_COLS, p.count - 1u);
            var q: array<vec4<f32>, 8>;
//!if GLU
            if (lane < 32u) {
                q = w_decode_row(w_row + col, g);
            } else {
                q = u_decode_row(p.u_row + col, g);
            }
//!else
            q = w_decode_row(w_row + col, g);
//!end
            for (var i = 0u; i < 8u; i++) {
                tile_w[lane * 9u + i] = q[i];
            }
        } else {
            let t = lane - 64u;
            let row = x_row + min(m0 + t / 2u, p.m - 1u);
            for (var i = (t % 2u) * 4u; i < (t % 2u) * 4u + 4u; i++) {
                tile_x[(t / 2u) * 9u + i] = x4(row, g * 8u + i);
            }
        }
        workgroupBarrier();
        for (var i = 0u; i < 8u; i++) {
            let b0 = tile_w[tx * 9u + i];
            let b1 = tile_w[(tx + 16u) * 9u + i];
            let b2 = tile_w[(tx + 32u) * 9u + i];
            let b3 = tile_w[(tx + 48u) * 9u + i];
            for (var r = 0u; r < 4u; r++) {
                let a = tile_x[(ty + 8u * r) * 9u + i];
                acc[r] += vec4<f32>(dot(a, b0), dot(a, b1), dot(a, b2), dot(a, b3));
            }
        }
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
