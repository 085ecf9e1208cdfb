// Splits rows into Q, K and V, rotates Q and K, and appends K and V to their caches.
//!include lib/put.wgsl
//!if ROPE
//!include lib/rotate.wgsl
//!end

// Column `col` of row `row` as it goes on.
fn turned(row: u32, col: u32) -> f32 {
    let i = row * p.cols + col;
//!if ROPE
    if (col < p.q_cols + p.kv_cols) {
        return rotated(i, col, position_of(row));
    }
//!end
    return x[i];
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let i = EACH * ((wid.y * groups.x + wid.x) * WG + lane);
    if (i >= p.len) {
        return;
    }
    let row = i / p.cols;
    let col = i % p.cols;
//!if BLOCKS
    var block: VALUE;
    for (var j = 0u; j < EACH; j++) {
        block[j] = turned(row, col + j);
    }
    put(row, col, block);
//!else
//!if HALVES
    put(row, col, vec2<f32>(turned(row, col), turned(row, col + 1u)));
//!else
    put(row, col, turned(row, col));
//!end
//!end
}
