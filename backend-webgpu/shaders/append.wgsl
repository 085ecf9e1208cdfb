// Writes rows into a state. Rows that are not real and rows beyond the state's end are dropped.
//!include lib/position.wgsl
//!if BLOCKS
//!writer state
//!end

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    // p.cols counts what is written together: numbers, with HALVES pairs that share a word, with BLOCKS blocks.
    let i = (wid.y * groups.x + wid.x) * WG + lane;
    let row = i / p.cols;
//!if NEXT
    let real = 1u;
    let target_row = step.position + step.rows + row;
//!else
    let real = min(step.rows, p.rows);
//!if EACH_NEXT
    let target_row = position_of(row) + 1u;
//!else
    let target_row = position_of(row);
//!end
//!end
    if (row < real && target_row < p.n_ctx) {
        let at = before_sequence(row, p.n_ctx) + target_row;
//!if BLOCKS
        var block: array<f32, EACH>;
        for (var j = 0u; j < EACH; j++) {
            block[j] = x[i * EACH + j];
        }
        state_write(at, i % p.cols, block);
//!else
//!if HALVES
        state[at * p.cols + i % p.cols] = pack2x16float(x[i]);
//!else
        state[at * p.cols + i % p.cols] = x[i];
//!end
//!end
    }
}
