// Splits rows into Q, K and V, rotates Q and K, and appends K and V to their caches. Rows that are not real and rows
// beyond the caches' end are not appended.
//!if ROPE
//!include lib/rotate.wgsl
//!end

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) wid: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = (wid.y * groups.x + wid.x) * WG + lane;
    if (i >= p.len) {
        return;
    }
    let row = i / p.cols;
    let col = i % p.cols;
    let position = step.position + row;
    if (col >= p.q_cols + p.kv_cols) {
        if (row < step.rows && position < p.n_ctx) {
            v_cache[position * p.kv_cols + col - p.q_cols - p.kv_cols] = x[i];
        }
        return;
    }
//!if ROPE
    let value = rotated(i, col, position);
//!else
    let value = x[i];
//!end
    if (col < p.q_cols) {
        q[row * p.q_cols + col] = value;
    } else if (row < step.rows && position < p.n_ctx) {
        k_cache[position * p.kv_cols + col - p.q_cols] = value;
    }
}
