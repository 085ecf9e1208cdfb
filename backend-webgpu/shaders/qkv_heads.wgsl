// Splits rows into the heads of Q, K and V, norms and rotates those of Q and K, with NORM_VALUES norms those of V, and
// appends K and V to their caches. A workgroup takes a head of a row.
//!include lib/put.wgsl
//!include lib/reduce.wgsl
//!if ROPE
//!include lib/rotate.wgsl
//!end

// The reciprocal root mean square of the head, with NORM_WHOLE of all heads of its row; 1 for heads that stay as
// they are.
var<private> head_scale: f32 = 1.0;

// Element i of x, which is in column `col`, as it is normed.
fn normed(i: u32, col: u32) -> f32 {
//!if NORM_WHOLE
    if (col < p.q_cols) {
        return x[i] * head_scale * q_gamma[col];
    }
    if (col < p.q_cols + p.kv_cols) {
        return x[i] * head_scale * k_gamma[col - p.q_cols];
    }
//!else
    let channel = col % p.head_dim;
    if (col < p.q_cols) {
        return x[i] * head_scale * q_gamma[channel];
    }
    if (col < p.q_cols + p.kv_cols) {
        return x[i] * head_scale * k_gamma[channel];
    }
//!if NORM_VALUES
    return x[i] * head_scale * v_gamma[channel];
//!end
//!end
    return x[i];
}

// Column `col` of row `row` as it goes on.
fn turned(row: u32, col: u32) -> f32 {
    let i = row * p.cols + col;
//!if ROPE
    if (col < p.q_cols + p.kv_cols) {
        return rotated(i, col, position_of(row));
    }
//!end
    return normed(i, col);
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let job = wid.y * groups.x + wid.x;
    if (job >= p.heads * p.rows) {
        return;
    }
    let row = job / p.heads;
    let first = job % p.heads * p.head_dim;
//!if NORM_VALUES
    let normed_cols = p.cols;
//!else
    let normed_cols = p.q_cols + p.kv_cols;
//!end
    if (first < normed_cols) {
//!if NORM_WHOLE
        let of_keys = first >= p.q_cols;
        let start = row * p.cols + select(0u, p.q_cols, of_keys);
        let count = select(p.q_cols, p.kv_cols, of_keys);
//!else
        let start = row * p.cols + first;
        let count = p.head_dim;
//!end
        var squares = 0.0;
        for (var c = lane; c < count; c += WG) {
            let value = x[start + c];
            squares += value * value;
        }
        head_scale = 1.0 / sqrt(workgroup_sum(lane, squares) / f32(count) + p.eps);
    }
    for (var c = EACH * lane; c < p.head_dim; c += EACH * WG) {
        let col = first + c;
//!if BLOCKS
        var block = VALUE();
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
}
