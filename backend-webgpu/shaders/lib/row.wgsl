// The row of x that a matrix is multiplied with, normed on the way. Every workgroup does this for itself, and every
// invocation too unless the row is staged. Of RMS only the sum of squares stands between a workgroup and its weights, so
// it is applied to the products: nothing waits for it before they are made.
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

// Where the row begins, of rows of so many columns.
fn row_first(cols: u32) -> u32 {
//!if SEVERAL
    return x_row * cols;
//!else
    return 0u;
//!end
}

//!if PARTS || STAGED
// CHUNK groups of the row, each with a vector of four beside it that is not used: invocations that read the same place of
// neighbouring groups find them in different banks.
var<workgroup> staged: array<vec4<f32>, 9u * CHUNK>;
// The squares of what this invocation brought, of which an RMS norm is made.
var<private> staged_squares: f32;

// Where the workgroup's memory has a vector of four.
fn staged_at(i: u32) -> u32 {
    return i + i / 8u;
}
//!end

//!if !PARTS
// Elements 4 i .. 4 i + 3 of the row, zeros beyond its end.
//!if SUMMED
fn x4(i: u32) -> vec4<f32> {
    return select(vec4<f32>(0.0), sum4(min(i, p.k / 4u - 1u)), 4u * i < p.k);
}
//!else
//!if VEC4
fn x4(i: u32) -> vec4<f32> {
    let at = ROW_AT + row_first(p.k / 4u) + min(i, p.k / 4u - 1u);
    return select(vec4<f32>(0.0), x[at], 4u * i < p.k);
}
//!else
fn x4(i: u32) -> vec4<f32> {
    var out = vec4<f32>(0.0);
    for (var e = 0u; e < 4u; e++) {
        if (4u * i + e < p.k) {
            out[e] = x[row_first(p.k) + 4u * i + e];
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
// invocation's squares, unless it sums them while it stages the row.
fn norm_begin(lane: u32) -> vec2<f32> {
//!if LAYER
    var sum = 0.0;
    for (var i = lane; 4u * i < p.k; i += WG) {
        sum += dot(x4(i), vec4<f32>(1.0));
    }
    let mean = workgroup_sum(lane, sum) / f32(p.k);
    return vec2<f32>(mean, deviation(lane, own_squares(lane, mean)));
//!else
//!if NORM && !STAGED
    return vec2<f32>(0.0, own_squares(lane, 0.0));
//!else
    return vec2<f32>(0.0);
//!end
//!end
}

//!if !PARTS
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
//!end

fn row_begin(lane: u32) -> vec2<f32> {
//!if PARTS
    parts_join(lane);
//!end
//!if SUMMED
    sum_begin(lane);
//!end
    return norm_begin(lane);
}

// Brings the groups from `first` on into the workgroup's memory.
fn row_stage(lane: u32, first: u32, begun: vec2<f32>) {
//!if STAGED
    if (first > 0u) {
        // The groups before are still being read.
        workgroupBarrier();
    }
    let count = 8u * min(CHUNK, p.w_groups - first);
    for (var i = lane; i < count; i += WG) {
//!if NORM && !LAYER
        let own = x4(8u * first + i);
        staged_squares += dot(own, own);
        staged[staged_at(i)] = own * gamma4(8u * first + i);
//!else
        staged[staged_at(i)] = normed4(8u * first + i, begun);
//!end
    }
    workgroupBarrier();
//!end
}

// Vector i of four of group g; `first` is what row_stage was given.
fn row4(g: u32, first: u32, i: u32, begun: vec2<f32>) -> vec4<f32> {
//!if PARTS || STAGED
    return staged[(g - first) * 9u + i];
//!else
    return normed4(8u * g + i, begun);
//!end
}

// The row's elements 32 g .. 32 g + 31.
fn row32(g: u32, first: u32, begun: vec2<f32>) -> Group {
    return Group(
        row4(g, first, 0u, begun), row4(g, first, 1u, begun), row4(g, first, 2u, begun), row4(g, first, 3u, begun),
        row4(g, first, 4u, begun), row4(g, first, 5u, begun), row4(g, first, 6u, begun), row4(g, first, 7u, begun));
}

// What the products are multiplied by. It contains the barrier that lanes_end needs.
fn row_scale(lane: u32, begun: vec2<f32>) -> f32 {
//!if NORM && !LAYER
//!if STAGED
    return deviation(lane, staged_squares);
//!else
    return deviation(lane, begun.y);
//!end
//!else
    lanes_meet();
    return 1.0;
//!end
}
