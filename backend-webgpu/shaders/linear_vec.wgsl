// One row of x times a weight matrix. LANES invocations share a row of weights and WG / LANES rows a workgroup; each
// weight is read once. Every workgroup computes the statistics of the norm for itself: x is small and cached.
//!include lib/decode.wgsl
//!include lib/unary.wgsl
//!include lib/reduce.wgsl
//!decoder w
//!if GLU
//!decoder u
//!end
const ROWS: u32 = WG / LANES;
var<workgroup> part: array<f32, WG>;
//!if GLU
var<workgroup> part_up: array<f32, WG>;
//!end

// Elements 4 i .. 4 i + 3 of the row, zeros beyond its end.
//!if VEC4
fn x4(i: u32) -> vec4<f32> {
    return select(vec4<f32>(0.0), x[min(i, p.k / 4u - 1u)], 4u * i < p.k);
}
//!else
fn x4(i: u32) -> vec4<f32> {
    var out = vec4<f32>(0.0);
    for (var e = 0u; e < 4u; e++) {
        if (4u * i + e < p.k) {
            out[e] = x[4u * i + e];
        }
    }
    return out;
}
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

// 1 for elements within the row, 0 beyond.
fn within(i: u32) -> vec4<f32> {
    return select(vec4<f32>(0.0), vec4<f32>(1.0), vec4<u32>(4u * i) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(p.k));
}

// Mean (0 for RMS) and reciprocal deviation.
fn statistics(lane: u32) -> vec2<f32> {
    let quads = (p.k + 3u) / 4u;
    var mean = 0.0;
//!if LAYER
    var sum = 0.0;
    for (var i = lane; i < quads; i += WG) {
        sum += dot(x4(i), vec4<f32>(1.0));
    }
    mean = workgroup_sum(lane, sum) / f32(p.k);
//!end
    var squares = 0.0;
    for (var i = lane; i < quads; i += WG) {
        let c = (x4(i) - mean) * within(i);
        squares += dot(c, c);
    }
    let variance = workgroup_sum(lane, squares) / f32(p.k);
    return vec2<f32>(mean, 1.0 / sqrt(variance + p.eps));
}

// The normed row; finite beyond its end, where weights are 0.
fn input4(i: u32, stats: vec2<f32>) -> vec4<f32> {
    let y = (x4(i) - stats.x) * stats.y * gamma4(i);
//!if LAYER
    return y + beta4(i);
//!else
    return y;
//!end
}
//!else
fn input4(i: u32, stats: vec2<f32>) -> vec4<f32> {
    return x4(i);
}
//!end

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) wid: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
//!if NORM
    let stats = statistics(lane);
//!else
    let stats = vec2<f32>(0.0);
//!end
    let row = (wid.y * groups.x + wid.x) * ROWS + lane / LANES;
    let local = min(row, p.count - 1u);
    let l = lane % LANES;
    var acc = 0.0;
//!if GLU
    var up = 0.0;
//!end
    for (var g = l; g < p.w_groups; g += LANES) {
        let i = g * 8u;
        let x0 = input4(i, stats);
        let x1 = input4(i + 1u, stats);
        let x2 = input4(i + 2u, stats);
        let x3 = input4(i + 3u, stats);
        let x4_ = input4(i + 4u, stats);
        let x5 = input4(i + 5u, stats);
        let x6 = input4(i + 6u, stats);
        let x7 = input4(i + 7u, stats);
        let q = w_decode_row(p.w_row + local, g);
        acc += dot(q[0], x0) + dot(q[1], x1) + dot(q[2], x2) + dot(q[3], x3);
        acc += dot(q[4], x4_) + dot(q[5], x5) + dot(q[6], x6) + dot(q[7], x7);
//!if GLU
        let v = u_decode_row(p.u_row + local, g);
        up += dot(v[0], x0) + dot(v[1], x1) + dot(v[2], x2) + dot(v[3], x3);
        up += dot(v[4], x4_) + dot(v[5], x5) + dot(v[6], x6) + dot(v[7], x7);
//!end
    }
    part[lane] = acc;
//!if GLU
    part_up[lane] = up;
//!end
    workgroupBarrier();
    for (var s = LANES / 2u; s > 0u; s >>= 1u) {
        if (l < s) {
            part[lane] += part[lane + s];
//!if GLU
            part_up[lane] += part_up[lane + s];
//!end
        }
        workgroupBarrier();
    }
    if (l != 0u || row >= p.count) {
        return;
    }
    let col = p.first + row;
    var value = part[lane];
//!if GLU
    var upper = part_up[lane];
//!if BIAS
    value += bias[col];
    upper += bias[col + p.out_cols];
//!end
    value = ACT(value) * upper;
//!else
//!if BIAS
    value += bias[col];
//!end
    value = ACT(value);
//!end
//!if RESIDUAL
    value += residual[col];
//!end
    out[col] = value;
}
