// rows_ready subgroups several vec4 norm layer
struct Step {
    position: u32,
    rows: u32,
    top_k: u32,
    top_p: f32,
    temperature: f32,
    seed_lo: u32,
    seed_hi: u32,
    sequence: u32,
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

alias Group = array<vec4<f32>, 8>;

fn dot32(a: Group, b: Group) -> f32 {
    return dot(a[0], b[0]) + dot(a[1], b[1]) + dot(a[2], b[2]) + dot(a[3], b[3])
        + dot(a[4], b[4]) + dot(a[5], b[5]) + dot(a[6], b[6]) + dot(a[7], b[7]);
}
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

var<private> x_row: u32;

fn row_first(cols: u32) -> u32 {
    return x_row * cols;
}


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

fn own_squares(lane: u32, mean: f32) -> f32 {
    var squares = 0.0;
    for (var i = lane; 4u * i < p.k; i += 64u) {
        let within = vec4<u32>(4u * i) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(p.k);
        let c = select(vec4<f32>(0.0), x4(i) - mean, within);
        squares += dot(c, c);
    }
    return squares;
}

fn deviation(lane: u32, squares: f32) -> f32 {
    return 1.0 / sqrt(workgroup_sum(lane, squares) / f32(p.k) + p.eps);
}

fn norm_begin(lane: u32) -> vec2<f32> {
    var sum = 0.0;
    for (var i = lane; 4u * i < p.k; i += 64u) {
        sum += dot(x4(i), vec4<f32>(1.0));
    }
    let mean = workgroup_sum(lane, sum) / f32(p.k);
    return vec2<f32>(mean, deviation(lane, own_squares(lane, mean)));
}

fn normed4(i: u32, begun: vec2<f32>) -> vec4<f32> {
    return (x4(i) - begun.x) * begun.y * gamma4(i) + beta4(i);
}

fn row_begin(lane: u32) -> vec2<f32> {
    return norm_begin(lane);
}

fn row_stage(lane: u32, first: u32, begun: vec2<f32>) {
}

fn row4(g: u32, first: u32, i: u32, begun: vec2<f32>) -> vec4<f32> {
    return normed4(8u * g + i, begun);
}

fn row32(g: u32, first: u32, begun: vec2<f32>) -> Group {
    return Group(
        row4(g, first, 0u, begun), row4(g, first, 1u, begun), row4(g, first, 2u, begun), row4(g, first, 3u, begun),
        row4(g, first, 4u, begun), row4(g, first, 5u, begun), row4(g, first, 6u, begun), row4(g, first, 7u, begun));
}

fn row_scale(lane: u32, begun: vec2<f32>) -> f32 {
    lanes_meet();
    return 1.0;
}
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
