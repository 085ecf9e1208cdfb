// What a tile multiplies of a group of 32 inner elements, as bytes: the weights' own integers, and x in 255 steps of the
// largest of 16 elements. A product of sixteen is their integer product times both scales; the offsets of weights are
// multiplied with the sum of what x became, so that the error is that of x alone.
//!include lib/bytes.wgsl
//!integers w
//!if GLU
//!integers u
//!end
// What one invocation brings of a group: a row of weights (bytes of both halves, then their scales and offsets), or the
// floats of half a row of x.
alias Brought = array<vec4<u32>, 4>;
// The halves of 32 rows of x, one after the other: bytes, and their scale beside their sum.
var<workgroup> tile_x: array<vec4<u32>, 64>;
var<workgroup> tile_x_scale: array<vec2<f32>, 64>;
// The same of 64 rows of weights: bytes, scales, offsets.
var<workgroup> tile_w: array<vec4<u32>, 128>;
var<workgroup> tile_w_scale: array<f32, 128>;
var<workgroup> tile_w_offset: array<f32, 128>;

fn brought(group: Integers) -> Brought {
    return Brought(group.low, group.high, bitcast<vec4<u32>>(vec4<f32>(group.scales, group.offsets)), vec4<u32>(0u));
}

fn bring_w(row: u32, g: u32) -> Brought {
    return brought(w_integers(row * p.w_groups + g));
}

//!if GLU
fn bring_u(row: u32, g: u32) -> Brought {
    return brought(u_integers(row * p.u_groups + g));
}
//!end

fn bring_x(row: u32, i: u32) -> Brought {
    return Brought(
        bitcast<vec4<u32>>(x4(row, i)), bitcast<vec4<u32>>(x4(row, i + 1u)),
        bitcast<vec4<u32>>(x4(row, i + 2u)), bitcast<vec4<u32>>(x4(row, i + 3u)));
}

// The integer product of sixteen bytes with sixteen.
fn dot16(a: vec4<u32>, b: vec4<u32>) -> i32 {
    return dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
}

fn steps(x: vec4<f32>, inverse: f32) -> u32 {
    return pack4xI8(vec4<i32>(round(x * inverse)));
}

fn put(lane: u32, brought: Brought) {
    if (lane < 64u) {
        let both = bitcast<vec4<f32>>(brought[2]);
        tile_w[lane] = brought[0];
        tile_w[lane + 64u] = brought[1];
        tile_w_scale[lane] = both.x;
        tile_w_scale[lane + 64u] = both.y;
        tile_w_offset[lane] = both.z;
        tile_w_offset[lane + 64u] = both.w;
        return;
    }
    let x0 = bitcast<vec4<f32>>(brought[0]);
    let x1 = bitcast<vec4<f32>>(brought[1]);
    let x2 = bitcast<vec4<f32>>(brought[2]);
    let x3 = bitcast<vec4<f32>>(brought[3]);
    let four = max(max(abs(x0), abs(x1)), max(abs(x2), abs(x3)));
    let top = max(max(four.x, four.y), max(four.z, four.w));
    // What is too small to be divided by is too small to matter.
    let inverse = select(127.0 / top, 0.0, top < 1e-30);
    let scale = top / 127.0;
    let bytes = vec4<u32>(steps(x0, inverse), steps(x1, inverse), steps(x2, inverse), steps(x3, inverse));
    let at = (lane % 2u) * 32u + (lane % 64u) / 2u;
    tile_x[at] = bytes;
    tile_x_scale[at] = scale * vec2<f32>(1.0, f32(dot16(bytes, vec4<u32>(0x01010101u))));
}

// The products of half a row of x with four of weights.
fn scaled(x: u32, w: array<vec4<u32>, 4>, scales: vec4<f32>, offsets: vec4<f32>) -> vec4<f32> {
    let a = tile_x[x];
    let scale = tile_x_scale[x];
    let products = vec4<f32>(vec4<i32>(dot16(a, w[0]), dot16(a, w[1]), dot16(a, w[2]), dot16(a, w[3])));
    return scale.x * scales * products + scale.y * offsets;
}

// Adds the products of rows ty + 8 r with weight rows tx + 16 c. Indices of sums are constants, so that those stay in
// registers.
fn multiply(tx: u32, ty: u32, acc: ptr<function, array<vec4<f32>, 4>>) {
    for (var half = 0u; half < 2u; half++) {
        let w = half * 64u + tx;
        let bytes = array<vec4<u32>, 4>(tile_w[w], tile_w[w + 16u], tile_w[w + 32u], tile_w[w + 48u]);
        let scales = vec4<f32>(tile_w_scale[w], tile_w_scale[w + 16u], tile_w_scale[w + 32u], tile_w_scale[w + 48u]);
        let offsets = vec4<f32>(tile_w_offset[w], tile_w_offset[w + 16u], tile_w_offset[w + 32u], tile_w_offset[w + 48u]);
        let x = half * 32u + ty;
        (*acc)[0] += scaled(x, bytes, scales, offsets);
        (*acc)[1] += scaled(x + 8u, bytes, scales, offsets);
        (*acc)[2] += scaled(x + 16u, bytes, scales, offsets);
        (*acc)[3] += scaled(x + 24u, bytes, scales, offsets);
    }
}
