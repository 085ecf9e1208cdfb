// Rows of a table; an invocation decodes one group of 32 elements. A table in several chunks takes one dispatch each,
// which writes only the rows that its chunk has.
//!include lib/decode.wgsl
//!include lib/index.wgsl
//!decoder w

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let index = (wid.y * groups.x + wid.x) * WG + lane;
    let per_row = (p.d + 31u) / 32u;
    let row = index / per_row;
    let group = index % per_row;
    if (row >= p.rows) {
        return;
    }
    let id = min(row_id(row), p.w_rows - 1u);
    if (id < p.w_first || id >= p.w_first + p.w_count) {
        return;
    }
    var values = w_decode_row(id - p.w_first, group);
    for (var e = 0u; e < 32u; e++) {
        let col = group * 32u + e;
        if (col < p.d) {
            out[row * p.d + col] = values[e / 4u][e % 4u];
        }
    }
}
