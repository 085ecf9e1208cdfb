// Rows of x as bytes times a quantised weight matrix, in tiles of 64 rows by 64 weight rows: the weights' own integers, and x in
// 255 steps of the largest number of a group. Sums of integer products are scaled group by group; the offsets of weights are
// multiplied with sums of what x became, so that the error is that of x alone. Each of the 64 invocations brings a row of
// either and keeps 8 by 8 sums in registers. For a GLU the first 32 weight rows of a tile are gates and the others the up parts
// of the same columns. The next group is on its way from memory while this one is multiplied.
//!include lib/bytes.wgsl
//!include lib/dot16.wgsl
//!include lib/products.wgsl
//!integers w
//!if GLU
//!integers u
//!end
// Bytes of both halves of the rows, and what scales them.
var<workgroup> tile_x: array<vec4<u32>, 128>;
var<workgroup> tile_w: array<vec4<u32>, 128>;
var<workgroup> scales_x: array<vec4<f32>, 64>;
var<workgroup> scales_w: array<vec4<f32>, 64>;

fn bring_w(lane: u32, w_row: u32, up_row: u32, g: u32) -> Integers {
//!if GLU
    if (lane >= 32u) {
        return u_integers(up_row * p.u_groups + g);
    }
//!end
    return w_integers(w_row * p.w_groups + g);
}

// The products of a group of a row of x and one of weights.
fn product(x: array<vec4<u32>, 2>, x_scales: vec4<f32>, w: array<vec4<u32>, 2>, w_scales: vec4<f32>) -> f32 {
    let low = dot16(x[0], w[0]);
    let high = dot16(x[1], w[1]);
    if (ONE_SCALE) {
        return x_scales.x * w_scales.x * f32(low + high) + (x_scales.y + x_scales.z) * w_scales.z;
    }
    return x_scales.x * (w_scales.x * f32(low) + w_scales.y * f32(high)) + x_scales.y * w_scales.z + x_scales.z * w_scales.w;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let wid = group_id + step.origin;
    let n0 = wid.x * (16u * COLUMNS);
    let m0 = wid.y * 64u;
    let begins = batch_rows(wid.z);
    let col = min(n0 + lane % (16u * COLUMNS), p.count - 1u);
    let w_row = begins.y + col;
//!if GLU
    let up_row = p.u_row + col;
//!else
    let up_row = 0u;
//!end
    let x_at = 3u * (begins.x + min(m0 + lane, p.m - 1u)) * p.x_groups;
    let tx = lane % 8u;
    let ty = lane / 8u;
    // Of row ty + 8 r and weight rows tx + 8 c.
    var acc: array<vec4<f32>, 16>;
    var next_w = bring_w(lane, w_row, up_row, 0u);
    var next_x = array<vec4<u32>, 3>(bytes[x_at], bytes[x_at + 1u], bytes[x_at + 2u]);
    for (var g = 0u; g < p.x_groups; g++) {
        tile_w[lane] = next_w.low;
        tile_w[lane + 64u] = next_w.high;
        scales_w[lane] = vec4<f32>(next_w.scales, next_w.offsets);
        tile_x[lane] = next_x[0];
        tile_x[lane + 64u] = next_x[1];
        scales_x[lane] = bitcast<vec4<f32>>(next_x[2]);
        if (g + 1u < p.x_groups) {
            next_w = bring_w(lane, w_row, up_row, g + 1u);
            let at = x_at + 3u * (g + 1u);
            next_x = array<vec4<u32>, 3>(bytes[at], bytes[at + 1u], bytes[at + 2u]);
        }
        workgroupBarrier();
        var x = array<array<vec4<u32>, 2>, 8>();
        var x_scales = array<vec4<f32>, 8>();
//!each ROW 8
        x[ROW] = array<vec4<u32>, 2>(tile_x[ty + 8u * ROW], tile_x[ty + 8u * ROW + 64u]);
        x_scales[ROW] = scales_x[ty + 8u * ROW];
//!end
//!each COL 8
        {
            let w = array<vec4<u32>, 2>(tile_w[tx + 8u * COL], tile_w[tx + 8u * COL + 64u]);
            let w_scales = scales_w[tx + 8u * COL];
//!each ROW 8
            acc[2u * ROW + COL / 4u][COL % 4u] += product(x[ROW], x_scales[ROW], w, w_scales);
//!end
        }
//!end
        workgroupBarrier();
    }
//!each ROW 8
    {
        let row = m0 + ty + 8u * ROW;
        let left = acc[2u * ROW];
        let right = acc[2u * ROW + 1u];
//!if GLU
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(left.xy, right.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(left.zw, right.zw));
//!else
        store(wid.z, row, n0 + tx, 8u, left);
        store(wid.z, row, n0 + tx + 32u, 8u, right);
//!end
    }
//!end
}
