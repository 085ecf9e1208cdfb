// linear_qkv Q8_0 subgroups shuffled vec4 bias norm rope neox halves
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
    pairs: u32,
    w_groups: u32,
    w_plane0: u32,
    w_plane1: u32,
    w_plane2: u32,
    w_plane3: u32,
    eps: f32,
    n_dims: u32,
    head_dim: u32,
    table_rows: u32,
    q_cols: u32,
    kv_cols: u32,
    n_ctx: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> gamma: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> bias: array<f32>;
@group(0) @binding(6) var<storage, read> table: array<f32>;
@group(0) @binding(7) var<storage, read_write> q: array<vec2<f32>>;
@group(0) @binding(8) var<storage, read_write> k_cache: array<u32>;
@group(0) @binding(9) var<storage, read_write> v_cache: array<u32>;

// One row of x, or a few, times the rows of Q, K and V. 4u invocations share a pair of rows that rotate together; Q is the
// result, K and V go into their caches. Each weight is read once, for all rows; each row's sums are added up in the same order
// whatever the rows beside it.
// What the decoders of the weight formats share.

// A binary16 in the low 16 bits. Drivers may flush subnormal halves to zero, and small scales are subnormal, so
// those are converted by integer arithmetic.
fn half_value(bits: u32) -> f32 {
    let magnitude = f32(bits & 0x3ffu) * 5.960464477539063e-8;
    let subnormal = select(magnitude, -magnitude, (bits & 0x8000u) != 0u);
    return select(unpack2x16float(bits & 0xffffu).x, subnormal, (bits & 0x7c00u) == 0u);
}

// Both halves of a word.
fn half_pair(word: u32) -> vec2<f32> {
    return vec2<f32>(half_value(word & 0xffffu), half_value(word >> 16u));
}

// Half i of the eight in a texel.
fn half_of(texel: vec4<u32>, i: u32) -> f32 {
    return half_value((texel[i >> 1u] >> ((i & 1u) * 16u)) & 0xffffu);
}

// The four lowest bits of a word, each of which stands for 2.
fn twos(word: u32) -> vec4<f32> {
    return vec4<f32>(((vec4<u32>(word) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u)) << vec4<u32>(1u));
}

// The four lowest pairs of bits of a word.
fn pairs(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u));
}

// The four lowest pairs of bits of a word with the four lowest bits of another above them.
fn threes(word: u32, bits: u32) -> vec4<f32> {
    let low = (vec4<u32>(word) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u);
    let high = (vec4<u32>(bits) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u);
    return vec4<f32>(low | (high << vec4<u32>(2u)));
}

// The four lowest nibbles of a word. Each is put where it is into the fraction of 2^23 and brought down again, exactly: that
// takes GPUs fewer steps than to move it and to convert an integer.
fn nibbles(word: u32) -> vec4<f32> {
    let whole = bitcast<vec4<f32>>((vec4<u32>(word) & vec4<u32>(15u, 240u, 3840u, 61440u)) | vec4<u32>(0x4b000000u));
    return whole * vec4<f32>(1.0, 0.0625, 0.00390625, 0.000244140625) - vec4<f32>(8388608.0, 524288.0, 32768.0, 2048.0);
}

// The four lowest nibbles of a word with the four lowest bits of another as their fifth bits.
fn fives(word: u32, bits: u32) -> vec4<f32> {
    let low = (vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    let high = (vec4<u32>(bits) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u);
    return vec4<f32>(low | (high << vec4<u32>(4u)));
}

// The four lowest nibbles of a word with the four lowest bit pairs of another above them.
fn sixes(word: u32, pairs: u32) -> vec4<f32> {
    let low = (vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    let high = (vec4<u32>(pairs) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u);
    return vec4<f32>(low | (high << vec4<u32>(4u)));
}

// The four signed bytes of a word.
fn signed_bytes(word: u32) -> vec4<f32> {
    return vec4<f32>(bitcast<vec4<i32>>(vec4<u32>(word) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u));
}
// Puts columns of the projection to Q, K and V where they belong: Q into the result, K and V into their caches, whose rows
// that are not real or beyond their end are dropped. 2u neighbours go together: with HALVES two, for they share a word,
// with BLOCKS a block.
// Where the rows of a step are in their texts. With SEQUENCES each row is of a sequence of its own, and states hold those of
// all sequences one after another.
fn position_of(row: u32) -> u32 {
    return step.position + row;
}

// Rows of a state before those of the row's sequence; each has `capacity` of them.
fn before_sequence(row: u32, capacity: u32) -> u32 {
    return 0u;
}
fn cached(value: vec2<f32>) -> u32 {
    return pack2x16float(value);
}

fn put(row: u32, col: u32, value: vec2<f32>) {
    if (col < p.q_cols) {
        q[(row * p.q_cols + col) / 2u] = value;
        return;
    }
    let position = position_of(row);
    if (row >= step.rows || position >= p.n_ctx) {
        return;
    }
    let at = (before_sequence(row, p.n_ctx) + position) * p.kv_cols + col - p.q_cols;
    if (col < p.q_cols + p.kv_cols) {
        k_cache[at / 2u] = cached(value);
    } else {
        v_cache[(at - p.kv_cols) / 2u] = cached(value);
    }
}
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
// Sums over the 4u invocations that share rows, for each of them: what lanes_begin returns goes to lanes_end, and between
// them is lanes_meet, or another barrier.
// Those of the 4u invocations that share rows and a subgroup, too, add up without waiting for each other.
const TOGETHER: u32 = min(4u, 8u);

fn together_sum(own: vec2<f32>) -> vec2<f32> {
    var sum = own;
    for (var apart = 1u; apart < TOGETHER; apart <<= 1u) {
        sum += subgroupShuffleXor(sum, apart);
    }
    return sum;
}

var<workgroup> lanes_sums: array<vec2<f32>, 64u / TOGETHER>;

fn lanes_begin(lane: u32, own: vec2<f32>) -> vec2<f32> {
    let sum = together_sum(own);
    if (4u > TOGETHER && lane % TOGETHER == 0u) {
        lanes_sums[lane / TOGETHER] = sum;
    }
    return sum;
}

fn lanes_meet() {
    if (4u > TOGETHER) {
        workgroupBarrier();
    }
}

fn lanes_end(lane: u32, begun: vec2<f32>) -> vec2<f32> {
    if (4u == TOGETHER) {
        return begun;
    }
    let first = lane / 4u * (4u / TOGETHER);
    var sum = lanes_sums[first];
    for (var i = 1u; i < 4u / TOGETHER; i++) {
        sum += lanes_sums[first + i];
    }
    return sum;
}


// Where the row begins, of rows of so many columns.
fn row_first(cols: u32) -> u32 {
    return 0u;
}


// Elements 4 i .. 4 i + 3 of the row, zeros beyond its end.
fn x4(i: u32) -> vec4<f32> {
    let at = 0u + row_first(p.k / 4u) + min(i, p.k / 4u - 1u);
    return select(vec4<f32>(0.0), x[at], 4u * i < p.k);
}

fn gamma4(i: u32) -> vec4<f32> {
    return gamma[min(i, p.k / 4u - 1u)];
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
    return vec2<f32>(0.0, own_squares(lane, 0.0));
}

// What goes into the products; finite beyond the row's end, where weights are 0.
fn normed4(i: u32, begun: vec2<f32>) -> vec4<f32> {
    return x4(i) * gamma4(i);
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
    return deviation(lane, begun.y);
}
// What the codes of a group are multiplied by, and what is added then: of its first half in x and y, of the second one
// in z and w.
fn w_scales(group: u32) -> vec4<f32> {
    // An f16 for each block.
    let block = group >> 0;
    let d = half_of(w[p.w_plane1 + (block >> 3u)], block & 7u);
    return vec4<f32>(d, 0.0, d, 0.0);
}

// Linear blocks: x = scale * (q - 0.0), with MINIMA x = scale * q + minimum.
fn w_value(q: vec4<f32>, scale: vec2<f32>) -> vec4<f32> {
    return scale.x * (q - 0.0);
}

// Codes are loaded before w_scales: there is more to do with them.
fn w_decode32(group: u32) -> array<vec4<f32>, 8> {
    let a = w[p.w_plane0 + group * 2u];
    let b = w[p.w_plane0 + group * 2u + 1u];
    let s = w_scales(group);
    return array<vec4<f32>, 8>(
        w_value(signed_bytes(a.x), s.xy), w_value(signed_bytes(a.y), s.xy),
        w_value(signed_bytes(a.z), s.xy), w_value(signed_bytes(a.w), s.xy),
        w_value(signed_bytes(b.x), s.zw), w_value(signed_bytes(b.y), s.zw),
        w_value(signed_bytes(b.z), s.zw), w_value(signed_bytes(b.w), s.zw));
}

// Elements 32 * group .. 32 * group + 31 of a row.
fn w_decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return w_decode32(row * p.w_groups + group);
}

const PAIRS: u32 = 64u / 4u;
var<workgroup> rotated: array<vec2<f32>, 1u * PAIRS>;

// The first column of pair i and the distance of its second.
fn pair_of(i: u32) -> vec2<u32> {
    // Rotating channels pair with those half of them away, the others with their neighbours.
    let half = p.n_dims / 2u;
    let c = i % (p.head_dim / 2u);
    let head = (i / (p.head_dim / 2u)) * p.head_dim;
    return select(vec2<u32>(head + 2u * c, 1u), vec2<u32>(head + c, half), c < half);
}

// What follows the products of a pair: biases, and cosine and sine of the angle that it turns by.
struct Rest {
    bias: vec2<f32>,
    turn: vec2<f32>,
}

fn rest_of(row: u32, place: vec2<u32>) -> Rest {
    var rest = Rest(vec2<f32>(0.0), vec2<f32>(1.0, 0.0));
    rest.bias = vec2<f32>(bias[place.x], bias[place.x + place.y]);
    let channel = place.x % p.head_dim;
    if (channel < p.n_dims && place.x < p.q_cols + p.kv_cols) {
        let angle = channel;
        let at = min(position_of(row), p.table_rows - 1u) * p.n_dims + min(2u * angle, p.n_dims - 2u);
        rest.turn = vec2<f32>(table[at], table[at + 1u]);
    }
    return rest;
}

fn ended(products: vec2<f32>, rest: Rest) -> vec2<f32> {
    let value = products + rest.bias;
    let c = rest.turn.x;
    let s = rest.turn.y;
    return vec2<f32>(value.x * c - value.y * s, value.x * s + value.y * c);
}

// Puts a pair of a row where it belongs, if it is this invocation's; `own` is the row's number in the workgroup, all of whose
// invocations come here together.
fn put_pair(lane: u32, own: u32, row: u32, is_own: bool, pair: u32, place: vec2<u32>, value: vec2<f32>) {
    let puts = is_own && pair < p.pairs;
    // Of rotating channels the neighbours are those of the next pair.
    if (is_own) {
        rotated[own * PAIRS + lane / 4u] = value;
    }
    workgroupBarrier();
    let next = rotated[own * PAIRS + min(lane / 4u + 1u, PAIRS - 1u)];
    if (puts && place.y == 1u) {
        put(row, place.x, value);
    } else if (puts && pair % 2u == 0u) {
        put(row, place.x, vec2<f32>(value.x, next.x));
        put(row, place.x + place.y, vec2<f32>(value.y, next.y));
    }
}

@compute @workgroup_size(64u)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let begun = row_begin(lane);
    let pair = (wid.y * groups.x + wid.x) * PAIRS + lane / 4u;
    let place = pair_of(min(pair, p.pairs - 1u));
    let l = lane % 4u;
    // What follows the products is loaded before them: loads do not wait for loads.
    let rest = rest_of(0u, place);
    var acc = vec2<f32>(0.0);
    for (var first = 0u; first < p.w_groups; first += 4u) {
        row_stage(lane, first, begun);
        let end = min(first + 4u, p.w_groups);
        for (var g = first + l; g < end; g += 4u) {
            let x32 = row32(g, first, begun);
            acc += vec2<f32>(dot32(w_decode_row(place.x, g), x32), dot32(w_decode_row(place.x + place.y, g), x32));
        }
    }
    let sum = lanes_begin(lane, acc);
    let scale = row_scale(lane, begun);
    var value = vec2<f32>(0.0);
    if (l == 0u) {
        value = ended(lanes_end(lane, sum) * scale, rest);
    }
    put_pair(lane, 0u, 0u, l == 0u, pair, place, value);
}
