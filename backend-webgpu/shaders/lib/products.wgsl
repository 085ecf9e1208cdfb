// What kernels of several rows share: where they find x and the weights, and what follows the products.
//!function ACT
//!if EPILOGUE
//!include lib/epilogue.wgsl
//!end

// The first rows of x and of the weights in a batch. Batches are repeated in place: of B results and A matrices, result i uses
// matrix i * A / B.
fn batch_rows(z: u32) -> vec2<u32> {
    let outer = z / p.out1;
    let inner = z % p.out1;
    return vec2<u32>(
        ((outer * p.x0 / p.out0) * p.x1 + inner * p.x1 / p.out1) * p.m,
        p.w_row + ((outer * p.b0 / p.out0) * p.b1 + inner * p.b1 / p.out1) * p.count);
}

// Writes a row's sums of columns n, n + apart and so on; for a GLU the last two are the up parts of the first two.
fn store(z: u32, row: u32, n: u32, apart: u32, sums: vec4<f32>) {
    if (row >= p.m) {
        return;
    }
    for (var c = 0u; c < COLUMNS; c++) {
        let local = n + apart * c;
        if (local >= p.count) {
            continue;
        }
        let col = p.first + local;
        let at = (z * p.m + row) * p.out_cols + col;
        var value = sums[c];
//!if BIAS
        value += bias[col];
//!end
        value = ACT(value);
//!if GLU
        var upper = sums[c + 2u];
//!if BIAS
        upper += bias[col + p.out_cols];
//!end
        value *= upper;
//!end
//!if RESIDUAL
        value += residual[at];
//!end
//!if EPILOGUE
        value = epilogue(value, row, col);
//!end
        out[at] = value;
    }
}
