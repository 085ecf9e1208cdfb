// linear_qkv Q8_0 subgroups shuffled vec4 bias norm rope neox halves
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


fn half_value(bits: u32) -> f32 {
    let magnitude = f32(bits & 0x3ffu) * 5.960464477539063e-8;
    let subnormal = select(magnitude, -magnitude, (bits & 0x8000u) != 0u);
    return select(unpack2x16float(bits & 0xffffu).x, subnormal, (bits & 0x7c00u) == 0u);
}

fn half_pair(word: u32) -> vec2<f32> {
    return vec2<f32>(half_value(word & 0xffffu), half_value(word >> 16u));
}

fn half_of(texel: vec4<u32>, i: u32) -> f32 {
    return half_value((texel[i >> 1u] >> ((i & 1u) * 16u)) & 0xffffu);
}

fn twos(word: u32) -> vec4<f32> {
    return vec4<f32>(((vec4<u32>(word) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u)) << vec4<u32>(1u));
}

fn pairs(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u));
}

fn threes(word: u32, bits: u32) -> vec4<f32> {
    let low = (vec4<u32>(word) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u);
    let high = (vec4<u32>(bits) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u);
    return vec4<f32>(low | (high << vec4<u32>(2u)));
}

fn nibbles(word: u32) -> vec4<f32> {
    let whole = bitcast<vec4<f32>>((vec4<u32>(word) & vec4<u32>(15u, 240u, 3840u, 61440u)) | vec4<u32>(0x4b000000u));
    return whole * vec4<f32>(1.0, 0.0625, 0.00390625, 0.000244140625) - vec4<f32>(8388608.0, 524288.0, 32768.0, 2048.0);
}

fn fives(word: u32, bits: u32) -> vec4<f32> {
    let low = (vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    let high = (vec4<u32>(bits) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u);
    return vec4<f32>(low | (high << vec4<u32>(4u)));
}

fn sixes(word: u32, pairs: u32) -> vec4<f32> {
    let low = (vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    let high = (vec4<u32>(pairs) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u);
    return vec4<f32>(low | (high << vec4<u32>(4u)));
}

fn signed_bytes(word: u32) -> vec4<f32> {
    return vec4<f32>(bitcast<vec4<i32>>(vec4<u32>(word) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u));
}
fn position_of(row: u32) -> u32 {
    return step.position + row;
}

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


fn row_first(cols: u32) -> u32 {
    return 0u;
}


fn x4(i: u32) -> vec4<f32> {
    let at = 0u + row_first(p.k / 4u) + min(i, p.k / 4u - 1u);
    return select(vec4<f32>(0.0), x[at], 4u * i < p.k);
}

fn gamma4(i: u32) -> vec4<f32> {
    return gamma[min(i, p.k / 4u - 1u)];
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
    return vec2<f32>(0.0, own_squares(lane, 0.0));
}

fn normed4(i: u32, begun: vec2<f32>) -> vec4<f32> {
    return x4(i) * gamma4(i);
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
    return deviation(lane, begun.y);
}
fn w_scales(group: u32) -> vec4<f32> {
    let block = group >> 0;
    let d = half_of(w[p.w_plane1 + (block >> 3u)], block & 7u);
    return vec4<f32>(d, 0.0, d, 0.0);
}

fn w_value(q: vec4<f32>, scale: vec2<f32>) -> vec4<f32> {
    return scale.x * (q - 0.0);
}

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

fn w_decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return w_decode32(row * p.w_groups + group);
}

const PAIRS: u32 = 64u / 4u;
var<workgroup> rotated: array<vec2<f32>, 1u * PAIRS>;

fn pair_of(i: u32) -> vec2<u32> {
    let half = p.n_dims / 2u;
    let c = i % (p.head_dim / 2u);
    let head = (i / (p.head_dim / 2u)) * p.head_dim;
    return select(vec2<u32>(head + 2u * c, 1u), vec2<u32>(head + c, half), c < half);
}

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

fn put_pair(lane: u32, own: u32, row: u32, is_own: bool, pair: u32, place: vec2<u32>, value: vec2<f32>) {
    let puts = is_own && pair < p.pairs;
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
