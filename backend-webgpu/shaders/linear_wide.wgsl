// Many rows of x times a weight matrix, in tiles of 64 rows by 64 weight rows. A group of 32 inner elements at a time is
// unpacked into workgroup memory, a row of x and one of weights by each of the 64 invocations; each of them keeps 8 by 8
// sums in registers. For a GLU the first 32 weight rows of a tile are gates and the others the up parts of the same columns.
// The next group is on its way from memory while this one is multiplied.
//!include lib/decode.wgsl
//!include lib/dots.wgsl
//!include lib/products.wgsl
//!include lib/rows32.wgsl
//!decoder w
//!if GLU
//!decoder u
//!end
var<workgroup> tile_x: array<vec4<f32>, 512>;
var<workgroup> tile_w: array<vec4<f32>, 512>;

// Where vector i of four of a tile's row lies: those of neighbouring rows are in different banks.
fn at(row: u32, i: u32) -> u32 {
    return row * 8u + (i ^ (row & 7u));
}

fn bring_w(lane: u32, w_row: u32, up_row: u32, g: u32) -> Group {
//!if GLU
    if (lane >= 32u) {
        return u_decode_row(up_row, g);
    }
//!end
    return w_decode_row(w_row, g);
}

fn put(lane: u32, of_w: Group, of_x: Group) {
    tile_w[at(lane, 0u)] = of_w[0];
    tile_w[at(lane, 1u)] = of_w[1];
    tile_w[at(lane, 2u)] = of_w[2];
    tile_w[at(lane, 3u)] = of_w[3];
    tile_w[at(lane, 4u)] = of_w[4];
    tile_w[at(lane, 5u)] = of_w[5];
    tile_w[at(lane, 6u)] = of_w[6];
    tile_w[at(lane, 7u)] = of_w[7];
    tile_x[at(lane, 0u)] = of_x[0];
    tile_x[at(lane, 1u)] = of_x[1];
    tile_x[at(lane, 2u)] = of_x[2];
    tile_x[at(lane, 3u)] = of_x[3];
    tile_x[at(lane, 4u)] = of_x[4];
    tile_x[at(lane, 5u)] = of_x[5];
    tile_x[at(lane, 6u)] = of_x[6];
    tile_x[at(lane, 7u)] = of_x[7];
}

// Adds the products of rows ty + 8 r with weight rows tx + 8 c: of c below 4 to the even sums, of the others to the odd ones.
// Indices of sums are constants, so that those stay in registers.
fn multiply(tx: u32, ty: u32, acc: ptr<function, array<vec4<f32>, 16>>) {
    for (var i = 0u; i < 8u; i++) {
        let w = at(tx, i);
        let x = at(ty, i);
        let low = array<vec4<f32>, 4>(tile_w[w], tile_w[w + 64u], tile_w[w + 128u], tile_w[w + 192u]);
        let high = array<vec4<f32>, 4>(tile_w[w + 256u], tile_w[w + 320u], tile_w[w + 384u], tile_w[w + 448u]);
        (*acc)[0] = plus_dots((*acc)[0], tile_x[x], low);
        (*acc)[1] = plus_dots((*acc)[1], tile_x[x], high);
        (*acc)[2] = plus_dots((*acc)[2], tile_x[x + 64u], low);
        (*acc)[3] = plus_dots((*acc)[3], tile_x[x + 64u], high);
        (*acc)[4] = plus_dots((*acc)[4], tile_x[x + 128u], low);
        (*acc)[5] = plus_dots((*acc)[5], tile_x[x + 128u], high);
        (*acc)[6] = plus_dots((*acc)[6], tile_x[x + 192u], low);
        (*acc)[7] = plus_dots((*acc)[7], tile_x[x + 192u], high);
        (*acc)[8] = plus_dots((*acc)[8], tile_x[x + 256u], low);
        (*acc)[9] = plus_dots((*acc)[9], tile_x[x + 256u], high);
        (*acc)[10] = plus_dots((*acc)[10], tile_x[x + 320u], low);
        (*acc)[11] = plus_dots((*acc)[11], tile_x[x + 320u], high);
        (*acc)[12] = plus_dots((*acc)[12], tile_x[x + 384u], low);
        (*acc)[13] = plus_dots((*acc)[13], tile_x[x + 384u], high);
        (*acc)[14] = plus_dots((*acc)[14], tile_x[x + 448u], low);
        (*acc)[15] = plus_dots((*acc)[15], tile_x[x + 448u], high);
    }
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
    let x_row = begins.x + min(m0 + lane, p.m - 1u);
    let tx = lane % 8u;
    let ty = lane / 8u;
    var acc: array<vec4<f32>, 16>;
    var next_w = bring_w(lane, w_row, up_row, 0u);
    var next_x = x32(x_row, 0u);
    for (var g = 0u; g < p.w_groups; g++) {
        put(lane, next_w, next_x);
        if (g + 1u < p.w_groups) {
            next_w = bring_w(lane, w_row, up_row, g + 1u);
            next_x = x32(x_row, g + 1u);
        }
        workgroupBarrier();
        multiply(tx, ty, &acc);
        workgroupBarrier();
    }
    // A copy may be indexed by a variable; the sums themselves stay in registers.
    var sums = acc;
    for (var r = 0u; r < 8u; r++) {
        let row = m0 + ty + 8u * r;
        let low = sums[2u * r];
        let high = sums[2u * r + 1u];
//!if GLU
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(low.xy, high.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(low.zw, high.zw));
//!else
        store(wid.z, row, n0 + tx, 8u, low);
        store(wid.z, row, n0 + tx + 32u, 8u, high);
//!end
    }
}
