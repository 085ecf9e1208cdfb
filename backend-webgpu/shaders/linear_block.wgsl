// Rows of x times a weight matrix, without memory of the workgroup and without barriers, which cost software more than they
// save. Each invocation multiplies 4 rows with 4 weight rows that lie WG apart; for a GLU the last two of those are the up
// parts of the first two.
//!include lib/decode.wgsl
//!include lib/products.wgsl
//!include lib/rows.wgsl
//!include lib/rows32.wgsl
//!decoder w
//!if GLU
//!decoder u
//!end

fn products(a: Group, b0: Group, b1: Group, b2: Group, b3: Group) -> vec4<f32> {
    return vec4<f32>(dot32(a, b0), dot32(a, b1), dot32(a, b2), dot32(a, b3));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let wid = group_id + step.origin;
    let begins = batch_rows(wid.z);
    let n = wid.x * (WG * COLUMNS) + lane;
    let m = wid.y * 4u;
    // Columns and rows beyond the ends are computed as the last ones, and not stored.
    let cols = min(vec4<u32>(n, n + WG, n + 2u * WG, n + 3u * WG), vec4<u32>(p.count - 1u));
    let rows = begins.x + min(vec4<u32>(m, m + 1u, m + 2u, m + 3u), vec4<u32>(p.m - 1u));
    // Every index is a constant: what is indexed otherwise is kept in memory.
    var acc: array<vec4<f32>, 4>;
    for (var g = 0u; g < p.w_groups; g++) {
        let b0 = w_decode_row(begins.y + cols.x, g);
        let b1 = w_decode_row(begins.y + cols.y, g);
//!if GLU
        let b2 = u_decode_row(p.u_row + cols.x, g);
        let b3 = u_decode_row(p.u_row + cols.y, g);
//!else
        let b2 = w_decode_row(begins.y + cols.z, g);
        let b3 = w_decode_row(begins.y + cols.w, g);
//!end
        acc[0] += products(x32(rows.x, g), b0, b1, b2, b3);
        acc[1] += products(x32(rows.y, g), b0, b1, b2, b3);
        acc[2] += products(x32(rows.z, g), b0, b1, b2, b3);
        acc[3] += products(x32(rows.w, g), b0, b1, b2, b3);
    }
    var sums = acc;
    for (var r = 0u; r < 4u; r++) {
        store(wid.z, m + r, n, WG, sums[r]);
    }
}
