// The row of x that a matrix is multiplied with, normed on the way. Every workgroup does this for itself, and every
// invocation too unless the row is staged: x is small and cached. Of RMS only the sum of squares stands between a
// workgroup and its weights, so it is applied to the products: weights are under way before the first barrier.
//!include lib/group.wgsl
//!include lib/reduce.wgsl
//!include lib/lanes.wgsl
//!if PARTS
//!include lib/parts.wgsl
//!end
//!if SUMMED
//!include lib/sum.wgsl
//!end

//!if SEVERAL
// Which of several rows it is.
var<private> x_row: u32;
//!end

// Elements 4 i .. 4 i + 3 of the row, zeros beyond its end.
//!if PARTS
fn x4(i: u32) -> vec4<f32> {
    return select(vec4<f32>(0.0), parts_row[min(i, p.k / 4u - 1u)], 4u * i < p.k);
}
//!else
//!if SUMMED
fn x4(i: u32) -> vec4<f32> {
    return select(vec4<f32>(0.0), sum4(min(i, p.k / 4u - 1u)), 4u * i < p.k);
}
//!else
//!if VEC4
fn x4(i: u32) -> vec4<f32> {
//!if SEVERAL
    let first = x_row * (p.k / 4u);
    return select(vec4<f32>(0.0), x[first + min(i, p.k / 4u - 1u)], 4u * i < p.k);
//!else
    return select(vec4<f32>(0.0), x[min(i, p.k / 4u - 1u)], 4u * i < p.k);
//!end
}
//!else
fn x4(i: u32) -> vec4<f32> {
    var out = vec4<f32>(0.0);
    for (var e = 0u; e < 4u; e++) {
        if (4u * i + e < p.k) {
//!if SEVERAL
            out[e] = x[x_row * p.k + 4u * i + e];
//!else
            out[e] = x[4u * i + e];
//!end
        }
    }
    return out;
}
//!end
//!end
//!end

//!if NORM
//!if VEC4
fn gamma4(i: u32) -> vec4<f32> {
    return gamma[min(i, p.k / 4u - 1u)];
}
//!if LAYER
fn beta4(i: u32) -> vec4<f32> {
    return beta[min(i, p.k / 4u - 1u)];
}
//!end
//!else
fn gamma4(i: u32) -> vec4<f32> {
    let e = 4u * i;
    let last = p.k - 1u;
    return vec4<f32>(gamma[min(e, last)], gamma[min(e + 1u, last)], gamma[min(e + 2u, last)], gamma[min(e + 3u, last)]);
}
//!if LAYER
fn beta4(i: u32) -> vec4<f32> {
    let e = 4u * i;
    let last = p.k - 1u;
    return vec4<f32>(beta[min(e, last)], beta[min(e + 1u, last)], beta[min(e + 2u, last)], beta[min(e + 3u, last)]);
}
//!end
//!end

// The sum of squared distances of this invocation's elements from the mean.
fn own_squares(lane: u32, mean: f32) -> f32 {
    var squares = 0.0;
    for (var i = lane; 4u * i < p.k; i += WG) {
        // 0 for elements beyond the row.
        let within = vec4<u32>(4u * i) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(p.k);
        let c = select(vec4<f32>(0.0), x4(i) - mean, within);
        squares += dot(c, c);
    }
    return squares;
}

fn deviation(lane: u32, squares: f32) -> f32 {
    return 1.0 / sqrt(workgroup_sum(lane, squares) / f32(p.k) + p.eps);
}
//!end

// What of the norm is known before the products: mean and reciprocal deviation of a layer norm, and of an RMS norm this
// invocation's squares.
fn norm_begin(lane: u32) -> vec2<f32> {
//!if NORM
//!if LAYER
    var sum = 0.0;
    for (var i = lane; 4u * i < p.k; i += WG) {
        sum += dot(x4(i), vec4<f32>(1.0));
    }
    let mean = workgroup_sum(lane, sum) / f32(p.k);
    return vec2<f32>(mean, deviation(lane, own_squares(lane, mean)));
//!else
    return vec2<f32>(0.0, own_squares(lane, 0.0));
//!end
//!else
    return vec2<f32>(0.0);
//!end
}

// What goes into the products; finite beyond the row's end, where weights are 0.
fn normed4(i: u32, begun: vec2<f32>) -> vec4<f32> {
//!if LAYER
    return (x4(i) - begun.x) * begun.y * gamma4(i) + beta4(i);
//!else
//!if NORM
    return x4(i) * gamma4(i);
//!else
    return x4(i);
//!end
//!end
}

//!if STAGED
// The same, once for the workgroup.
var<workgroup> staged: array<vec4<f32>, STAGE>;
//!end

fn row4(i: u32, begun: vec2<f32>) -> vec4<f32> {
//!if STAGED
    return staged[i];
//!else
    return normed4(i, begun);
//!end
}

fn row_begin(lane: u32) -> vec2<f32> {
//!if PARTS
    parts_join(lane);
//!end
//!if SUMMED
    sum_begin(lane);
//!end
    let begun = norm_begin(lane);
//!if STAGED
    for (var i = lane; i < STAGE; i += WG) {
        staged[i] = normed4(i, begun);
    }
    workgroupBarrier();
//!end
    return begun;
}

// The row's elements 32 g .. 32 g + 31.
fn row32(g: u32, begun: vec2<f32>) -> Group {
    let i = g * 8u;
    return Group(
        row4(i, begun), row4(i + 1u, begun), row4(i + 2u, begun), row4(i + 3u, begun),
        row4(i + 4u, begun), row4(i + 5u, begun), row4(i + 6u, begun), row4(i + 7u, begun));
}

// What the products are multiplied by. It contains the barrier that lanes_end needs.
fn row_scale(lane: u32, begun: vec2<f32>) -> f32 {
//!if NORM
//!if LAYER
    lanes_meet();
    return 1.0;
//!else
    return deviation(lane, begun.y);
//!end
//!else
    lanes_meet();
    return 1.0;
//!end
}
