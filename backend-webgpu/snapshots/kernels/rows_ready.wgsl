// rows_ready subgroups several vec4 norm layer
// The values that differ from step to step.
struct Step {
    position: u32,
    rows: u32,
    top_k: u32,
    top_p: f32,
    temperature: f32,
    seed_lo: u32,
    seed_hi: u32,
    sequence: u32,
    // Where the workgroups of this dispatch begin, if it is a part of a kernel; else 0.
    origin: vec3<u32>,
}
struct Params {
    k: u32,
    w_groups: u32,
    eps: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> gamma: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> beta: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> ready: array<vec4<f32>>;

// A few rows of x made ready for the products that follow, a workgroup a row: normed as a workgroup of one row does it, and
// with neighbouring groups beside each other, so that invocations which share a row of weights read x together.
// The row of x that a matrix is multiplied with, normed on the way. Every workgroup does this for itself, and every
// invocation too unless the row is staged. Of RMS only the sum of squares stands between a workgroup and its weights, so
// it is applied to the products: nothing waits for it before they are made.
// 32 numbers along the inner dimension.
alias Group = array<vec4<f32>, 8>;

fn dot32(a: Group, b: Group) -> f32 {
    return dot(a[0], b[0]) + dot(a[1], b[1]) + dot(a[2], b[2]) + dot(a[3], b[3])
        + dot(a[4], b[4]) + dot(a[5], b[5]) + dot(a[6], b[6]) + dot(a[7], b[7]);
}
// Sum and maximum over the 64u invocations of a workgroup; every invocation gets the result. First each SPAN of them is
// reduced, then the spans.
// A span is in one subgroup, so one barrier suffices. The next reduction takes the other half of the memory: it begins
// while this one's results are still being read.
const SPAN: u32 = 8u;
var<workgroup> reduce_few: array<f32, 2u * 64u / SPAN>;
var<private> reduce_half: u32;

fn reduce_leave(lane: u32, value: f32) -> u32 {
    reduce_half = 64u / SPAN - reduce_half;
    if (lane % SPAN == 0u) {
        reduce_few[reduce_half + lane / SPAN] = value;
    }
    return reduce_half;
}

fn reduce_sums(lane: u32, value: f32) -> u32 {
    var sum = value;
    for (var distance = 1u; distance < SPAN; distance <<= 1u) {
        sum += subgroupShuffleXor(sum, distance);
    }
    return reduce_leave(lane, sum);
}

fn reduce_maxima(lane: u32, value: f32) -> u32 {
    var most = value;
    for (var distance = 1u; distance < SPAN; distance <<= 1u) {
        most = max(most, subgroupShuffleXor(most, distance));
    }
    return reduce_leave(lane, most);
}

fn workgroup_sum(lane: u32, value: f32) -> f32 {
    let first = reduce_sums(lane, value);
    workgroupBarrier();
    var total = reduce_few[first];
    for (var i = 1u; i < 64u / SPAN; i++) {
        total += reduce_few[first + i];
    }
    return total;
}

fn workgroup_max(lane: u32, value: f32) -> f32 {
    let first = reduce_maxima(lane, value);
    workgroupBarrier();
    var highest = reduce_few[first];
    for (var i = 1u; i < 64u / SPAN; i++) {
        highest = max(highest, reduce_few[first + i]);
    }
    return highest;
}
// Sums over the 1u invocations that share rows, for each of them: what lanes_begin returns goes to lanes_end, and between
// them is lanes_meet, or another barrier.
// Those of the 1u invocations that share rows and a subgroup, too, add up without waiting for each other.
const TOGETHER: u32 = 1u;

fn together_sum(own: f32) -> f32 {
    var sum = own;
    return sum;
}

var<workgroup> lanes_sums: array<f32, 64u / TOGETHER>;

fn lanes_begin(lane: u32, own: f32) -> f32 {
    let sum = together_sum(own);
    if (1u > TOGETHER && lane % TOGETHER == 0u) {
        lanes_sums[lane / TOGETHER] = sum;
    }
    return sum;
}

fn lanes_meet() {
    if (1u > TOGETHER) {
        workgroupBarrier();
    }
}

fn lanes_end(lane: u32, begun: f32) -> f32 {
    if (1u == TOGETHER) {
        return begun;
    }
    let first = lane / 1u * (1u / TOGETHER);
    var sum = lanes_sums[first];
    for (var i = 1u; i < 1u / TOGETHER; i++) {
        sum += lanes_sums[first + i];
    }
    return sum;
}

// Which of several rows it is.
var<private> x_row: u32;

// Where the row begins, of rows of so many columns.
fn row_first(cols: u32) -> u32 {
    return x_row * cols;
}


// Elements 4 i .. 4 i + 3 of the row, zeros beyond its end.
fn x4(i: u32) -> vec4<f32> {
    let at = 0u + row_first(p.k / 4u) + min(i, p.k / 4u - 1u);
    return select(vec4<f32>(0.0), x[at], 4u * i < p.k);
}

fn gamma4(i: u32) -> vec4<f32> {
    return gamma[min(i, p.k / 4u - 1u)];
}
fn beta4(i: u32) -> vec4<f32> {
    return beta[min(i, p.k / 4u - 1u)];
}

// The sum of squared distances of this invocation's elements from the mean.
fn own_squares(lane: u32, mean: f32) -> f32 {
    var squares = 0.0;
    for (var i = lane; 4u * i < p.k; i += 64u) {
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

// What of the norm is known before the products: mean and reciprocal deviation of a layer norm, and of an RMS norm this
// invocation's squares, unless it sums them while it stages the row.
fn norm_begin(lane: u32) -> vec2<f32> {
    var sum = 0.0;
    for (var i = lane; 4u * i < p.k; i += 64u) {
        sum += dot(x4(i), vec4<f32>(1.0));
    }
    let mean = workgroup_sum(lane, sum) / f32(p.k);
    return vec2<f32>(mean, deviation(lane, own_squares(lane, mean)));
}

// What goes into the products; finite beyond the row's end, where weights are 0.
fn normed4(i: u32, begun: vec2<f32>) -> vec4<f32> {
    return (x4(i) - begun.x) * begun.y * gamma4(i) + beta4(i);
}

fn row_begin(lane: u32) -> vec2<f32> {
    return norm_begin(lane);
}

// Brings the groups from `first` on into the workgroup's memory.
fn row_stage(lane: u32, first: u32, begun: vec2<f32>) {
}

// Vector i of four of group g; `first` is what row_stage was given.
fn row4(g: u32, first: u32, i: u32, begun: vec2<f32>) -> vec4<f32> {
    return normed4(8u * g + i, begun);
}

// The row's elements 32 g .. 32 g + 31.
fn row32(g: u32, first: u32, begun: vec2<f32>) -> Group {
    return Group(
        row4(g, first, 0u, begun), row4(g, first, 1u, begun), row4(g, first, 2u, begun), row4(g, first, 3u, begun),
        row4(g, first, 4u, begun), row4(g, first, 5u, begun), row4(g, first, 6u, begun), row4(g, first, 7u, begun));
}

// What the products are multiplied by. It contains the barrier that lanes_end needs.
fn row_scale(lane: u32, begun: vec2<f32>) -> f32 {
    lanes_meet();
    return 1.0;
}
// Where rows lie that were made ready for products: vector i of four of each group after that of the groups before, so that
// neighbouring groups are neighbours; behind all rows what each one's products are multiplied by.
fn ready_at(row: u32, i: u32) -> u32 {
    return 0u + (row * 8u + i % 8u) * p.w_groups + i / 8u;
}

fn scale_at(row: u32) -> u32 {
    return 0u + 8u * 8u * p.w_groups + row;
}

@compute @workgroup_size(64u)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    x_row = group_id.x + step.origin.x;
    let begun = row_begin(lane);
    for (var i = lane; i < 8u * p.w_groups; i += 64u) {
        ready[ready_at(x_row, i)] = normed4(i, begun);
    }
    let scale = row_scale(lane, begun);
    if (lane == 0u) {
        ready[scale_at(x_row)] = vec4<f32>(scale);
    }
}
