// Many rows of x times a weight matrix, in tiles of 64 rows by 64 weight rows. A group of 32 inner elements at a time is
// unpacked into workgroup memory: of a row of weights by each of the 64 invocations, and of x so that neighbours bring what
// lies beside each other. Each of them keeps 8 by 8 sums in registers. For a GLU the first 32 weight rows of a tile are gates
// and the others the up parts of the same columns. The next group is on its way from memory while this one is multiplied.
//!include lib/decode.wgsl
//!include lib/dots.wgsl
//!include lib/group.wgsl
//!include lib/products.wgsl
//!include lib/rows.wgsl
//!decoder w
//!if GLU
//!decoder u
//!end
var<workgroup> tile_x: array<vec4<f32>, 512>;
var<workgroup> tile_w: array<vec4<f32>, 512>;

// Where vector i of eight of a tile's row lies: those of neighbouring rows are in different banks.
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

// A vector each of eight rows from `first` on, none after the one `last` rows further.
fn bring_x(lane: u32, first: u32, last: u32, g: u32) -> Group {
    var vectors: Group;
//!each I 8
    vectors[I] = x4(first + min(lane / 8u + 8u * I, last), 8u * g + lane % 8u);
//!end
    return vectors;
}

fn put(lane: u32, of_w: Group, of_x: Group) {
//!each I 8
    tile_w[at(lane, I)] = of_w[I];
    tile_x[at(lane / 8u + 8u * I, lane % 8u)] = of_x[I];
//!end
}

// Adds the products of rows ty + 8 r with weight rows tx + 8 c: of c below 4 to the even sums, of the others to the odd ones.
// Indices of sums are constants, so that those stay in registers.
fn multiply(tx: u32, ty: u32, acc: ptr<function, array<vec4<f32>, 16>>) {
    for (var i = 0u; i < 8u; i++) {
        let w = at(tx, i);
        let x = at(ty, i);
        let low = array<vec4<f32>, 4>(tile_w[w], tile_w[w + 64u], tile_w[w + 128u], tile_w[w + 192u]);
        let high = array<vec4<f32>, 4>(tile_w[w + 256u], tile_w[w + 320u], tile_w[w + 384u], tile_w[w + 448u]);
//!each ROW 8
        (*acc)[2u * ROW] = plus_dots((*acc)[2u * ROW], tile_x[x + 64u * ROW], low);
        (*acc)[2u * ROW + 1u] = plus_dots((*acc)[2u * ROW + 1u], tile_x[x + 64u * ROW], high);
//!end
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
    let first = begins.x + m0;
    let last = p.m - 1u - m0;
    let tx = lane % 8u;
    let ty = lane / 8u;
    var acc: array<vec4<f32>, 16>;
    var next_w = bring_w(lane, w_row, up_row, 0u);
    var next_x = bring_x(lane, first, last, 0u);
    for (var g = 0u; g < p.w_groups; g++) {
        put(lane, next_w, next_x);
        if (g + 1u < p.w_groups) {
            next_w = bring_w(lane, w_row, up_row, g + 1u);
            next_x = bring_x(lane, first, last, g + 1u);
        }
        workgroupBarrier();
        multiply(tx, ty, &acc);
        workgroupBarrier();
    }
//!each ROW 8
    {
        let row = m0 + ty + 8u * ROW;
        let low = acc[2u * ROW];
        let high = acc[2u * ROW + 1u];
//!if GLU
        store(wid.z, row, n0 + tx, 8u, vec4<f32>(low.xy, high.xy));
        store(wid.z, row, n0 + tx + 16u, 8u, vec4<f32>(low.zw, high.zw));
//!else
        store(wid.z, row, n0 + tx, 8u, low);
        store(wid.z, row, n0 + tx + 32u, 8u, high);
//!end
    }
//!end
}
