// Token rows plus position rows; an invocation decodes one group of 32 elements of each. Tables in several chunks
// take one dispatch for each pair of chunks.
//!include lib/decode.wgsl
//!include lib/position.wgsl
//!decoder w
//!decoder u

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
    let at = position_of(row);
    let id = min(u32(max(ids[before_sequence(row, p.n_ctx) + min(at, p.n_ctx - 1u)], 0)), p.w_rows - 1u);
    let position = min(at, p.u_rows - 1u);
    let here = id >= p.w_first && id < p.w_first + p.w_count;
    if (!here || position < p.u_first || position >= p.u_first + p.u_count) {
        return;
    }
    var a = w_decode_row(id - p.w_first, group);
    var b = u_decode_row(position - p.u_first, group);
    for (var e = 0u; e < 32u; e++) {
        let col = group * 32u + e;
        if (col < p.d) {
            out[row * p.d + col] = a[e / 4u][e % 4u] + b[e / 4u][e % 4u];
        }
    }
}
