// Many rows of x times a weight matrix with many rows, in tiles of 128 rows by 128 weight rows. Half a group of 32 inner elements
// at a time is unpacked into workgroup memory: of a row of weights by each of the 128 invocations, and of x so that neighbours
// bring what lies beside each other. Each of them keeps 16 by 8 sums in registers. For a GLU the first 64 weight rows of a
// tile are gates and the others the up parts of the same columns. The next half is on its way from memory while this one is
// multiplied.
//!include lib/decode.wgsl
//!include lib/dots.wgsl
//!include lib/group.wgsl
//!include lib/products.wgsl
//!include lib/rows.wgsl
//!decoder w
//!if GLU
//!decoder u
//!end
// Half a group of a row.
alias Half = array<vec4<f32>, 4>;
var<workgroup> tile_x: array<vec4<f32>, 512>;
var<workgroup> tile_w: array<vec4<f32>, 512>;

// Where vector i of four of a tile's row lies: those of neighbouring rows are in different banks.
fn at(row: u32, i: u32) -> u32 {
    return row * 4u + (i ^ ((row >> 1u) & 3u));
}

// Half h of a row of weights, counted from the row's begin on.
fn bring_w(lane: u32, w_row: u32, up_row: u32, h: u32) -> Half {
    var group: Group;
//!if GLU
    if (lane >= 64u) {
        group = u_decode_row(up_row, h / 2u);
    } else {
        group = w_decode_row(w_row, h / 2u);
    }
//!else
    group = w_decode_row(w_row, h / 2u);
//!end
    if ((h & 1u) == 0u) {
        return Half(group[0], group[1], group[2], group[3]);
    }
    return Half(group[4], group[5], group[6], group[7]);
}

// A vector each of four rows from `first` on, none after the one `last` rows further.
fn bring_x(lane: u32, first: u32, last: u32, h: u32) -> Half {
    var vectors: Half;
//!each I 4
    vectors[I] = x4(first + min(lane / 4u + 32u * I, last), 4u * h + lane % 4u);
//!end
    return vectors;
}

fn put(lane: u32, of_w: Half, of_x: Half) {
//!each I 4
    tile_w[at(lane, I)] = of_w[I];
    tile_x[at(lane / 4u + 32u * I, lane % 4u)] = of_x[I];
//!end
}

// Adds the products of rows ty + 8 r with weight rows tx + 16 c: of c below 4 to the even sums, of the others to the odd ones.
// Indices of sums are constants, so that those stay in registers.
fn multiply(tx: u32, ty: u32, acc: ptr<function, array<vec4<f32>, 32>>) {
    for (var i = 0u; i < 4u; i++) {
        let w = at(tx, i);
        let x = at(ty, i);
        let low = array<vec4<f32>, 4>(tile_w[w], tile_w[w + 64u], tile_w[w + 128u], tile_w[w + 192u]);
        let high = array<vec4<f32>, 4>(tile_w[w + 256u], tile_w[w + 320u], tile_w[w + 384u], tile_w[w + 448u]);
//!each ROW 16
        (*acc)[2u * ROW] = plus_dots((*acc)[2u * ROW], tile_x[x + 32u * ROW], low);
        (*acc)[2u * ROW + 1u] = plus_dots((*acc)[2u * ROW + 1u], tile_x[x + 32u * ROW], high);
//!end
    }
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let wid = group_id + step.origin;
    let n0 = wid.x * (32u * COLUMNS);
    let m0 = wid.y * 128u;
    let begins = batch_rows(wid.z);
    let col = min(n0 + lane % (32u * COLUMNS), p.count - 1u);
    let w_row = begins.y + col;
//!if GLU
    let up_row = p.u_row + col;
//!else
    let up_row = 0u;
//!end
    let first = begins.x + m0;
    let last = p.m - 1u - m0;
    let tx = lane % 16u;
    let ty = lane / 16u;
    var acc: array<vec4<f32>, 32>;
    var next_w = bring_w(lane, w_row, up_row, 0u);
    var next_x = bring_x(lane, first, last, 0u);
    for (var h = 0u; h < 2u * p.w_groups; h++) {
        put(lane, next_w, next_x);
        if (h + 1u < 2u * p.w_groups) {
            next_w = bring_w(lane, w_row, up_row, h + 1u);
            next_x = bring_x(lane, first, last, h + 1u);
        }
        workgroupBarrier();
        multiply(tx, ty, &acc);
        workgroupBarrier();
    }
//!each ROW 16
    {
        let row = m0 + ty + 8u * ROW;
        let low = acc[2u * ROW];
        let high = acc[2u * ROW + 1u];
//!if GLU
        store(wid.z, row, n0 + tx, 16u, vec4<f32>(low.xy, high.xy));
        store(wid.z, row, n0 + tx + 32u, 16u, vec4<f32>(low.zw, high.zw));
//!else
        store(wid.z, row, n0 + tx, 16u, low);
        store(wid.z, row, n0 + tx + 64u, 16u, high);
//!end
    }
//!end
}
