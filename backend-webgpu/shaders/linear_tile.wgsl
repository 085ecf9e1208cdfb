// Rows of x times a weight matrix, in tiles of 32 rows by 64 weight rows. A group of 32 inner elements at a time is
// unpacked into workgroup memory; each of the 128 invocations keeps 4 by 4 sums in registers. For a GLU the first 32
// weight rows of a tile are gates and the others the up parts of the same columns. The next group is on its way from
// memory while this one is multiplied.
//!include lib/decode.wgsl
//!include lib/products.wgsl
//!include lib/tile_float.wgsl

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
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let wid = group_id + step.origin;
    let n0 = wid.x * (16u * COLUMNS);
    let m0 = wid.y * 32u;
    let begins = batch_rows(wid.z);
    let w_col = min(n0 + lane % (16u * COLUMNS), p.count - 1u);
    let x_row = begins.x + min(m0 + (lane % 64u) / 2u, p.m - 1u);
    let tx = lane % 16u;
    let ty = lane / 16u;
    var acc: array<vec4<f32>, 4>;
    var next = bring(lane, begins.y, w_col, x_row, 0u);
    for (var g = 0u; g < p.w_groups; g++) {
        put(lane, next);
        if (g + 1u < p.w_groups) {
            next = bring(lane, begins.y, w_col, x_row, g + 1u);
        }
        workgroupBarrier();
        multiply(tx, ty, &acc);
        workgroupBarrier();
    }
    // A copy may be indexed by a variable; the sums themselves stay in registers.
    var sums = acc;
    for (var r = 0u; r < 4u; r++) {
        store(wid.z, m0 + ty + 8u * r, n0 + tx, 16u, sums[r]);
    }
}
