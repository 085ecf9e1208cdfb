// The index of the largest element of a row, the first of equals, or -1 if one is not finite; a workgroup a row.
//!include lib/best.wgsl

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let row = wid.y * groups.x + wid.x;
    if (row >= p.rows) {
        return;
    }
    var value = 0.0;
    var index = NONE;
    var finite = true;
//!if VEC4
    // A vocabulary is long for one workgroup: several loads are under way at a time. Those beyond the end repeat the last.
    let quads = p.cols / 4u;
    for (var q = lane; q < quads; q += LOADS * WG) {
        var loaded = array<vec4<f32>, LOADS>();
        for (var i = 0u; i < LOADS; i++) {
            loaded[i] = x[row * quads + min(q + i * WG, quads - 1u)];
        }
        for (var i = 0u; i < LOADS; i++) {
            let c = 4u * min(q + i * WG, quads - 1u);
            let bits = bitcast<vec4<u32>>(loaded[i]) & vec4<u32>(0x7f800000u);
            finite = finite && all(bits != vec4<u32>(0x7f800000u));
            for (var e = 0u; e < 4u; e++) {
                if (index == NONE || loaded[i][e] > value) {
                    value = loaded[i][e];
                    index = c + e;
                }
            }
        }
    }
//!else
    for (var c = lane; c < p.cols; c += WG) {
        let candidate = x[row * p.cols + c];
        finite = finite && is_finite(candidate);
        if (index == NONE || candidate > value) {
            value = candidate;
            index = c;
        }
    }
//!end
    workgroup_best(lane, value, select(BROKEN, index, finite));
    if (lane == 0u) {
        let id = select(i32(min(best_index[0], p.cols - 1u)), -1, best_index[0] == BROKEN);
//!if APPEND
        let next = step.position + step.rows;
        if (next < p.n_ctx) {
            out[next] = id;
        }
//!else
        out[row] = id;
//!end
    }
}
