// What a tile multiplies of a group of 32 inner elements, as floats.
//!include lib/dots.wgsl
//!include lib/rows.wgsl
//!decoder w
//!if GLU
//!decoder u
//!end
// What one invocation brings of a group: a row of weights, or half a row of x and zeros.
alias Brought = array<vec4<f32>, 8>;
// Rows of 8 texels, padded to 9 against bank conflicts.
var<workgroup> tile_x: array<vec4<f32>, 288>;
var<workgroup> tile_w: array<vec4<f32>, 576>;

fn bring_w(row: u32, g: u32) -> Brought {
    return w_decode_row(row, g);
}

//!if GLU
fn bring_u(row: u32, g: u32) -> Brought {
    return u_decode_row(row, g);
}
//!end

fn bring_x(row: u32, i: u32) -> Brought {
    let zero = vec4<f32>(0.0);
    return Brought(x4(row, i), x4(row, i + 1u), x4(row, i + 2u), x4(row, i + 3u), zero, zero, zero, zero);
}

fn put(lane: u32, brought: Brought) {
    if (lane < 64u) {
        let at = lane * 9u;
        tile_w[at] = brought[0];
        tile_w[at + 1u] = brought[1];
        tile_w[at + 2u] = brought[2];
        tile_w[at + 3u] = brought[3];
        tile_w[at + 4u] = brought[4];
        tile_w[at + 5u] = brought[5];
        tile_w[at + 6u] = brought[6];
        tile_w[at + 7u] = brought[7];
    } else {
        let at = (lane % 64u) / 2u * 9u + (lane % 2u) * 4u;
        tile_x[at] = brought[0];
        tile_x[at + 1u] = brought[1];
        tile_x[at + 2u] = brought[2];
        tile_x[at + 3u] = brought[3];
    }
}

// Adds the products of rows ty + 8 r with weight rows tx + 16 c. Indices of sums are constants, so that those stay in
// registers.
fn multiply(tx: u32, ty: u32, acc: ptr<function, array<vec4<f32>, 4>>) {
    for (var i = 0u; i < 8u; i++) {
        let x = ty * 9u + i;
        let w = tx * 9u + i;
        let b = array<vec4<f32>, 4>(tile_w[w], tile_w[w + 144u], tile_w[w + 288u], tile_w[w + 432u]);
        (*acc)[0] = plus_dots((*acc)[0], tile_x[x], b);
        (*acc)[1] = plus_dots((*acc)[1], tile_x[x + 72u], b);
        (*acc)[2] = plus_dots((*acc)[2], tile_x[x + 144u], b);
        (*acc)[3] = plus_dots((*acc)[3], tile_x[x + 216u], b);
    }
}
