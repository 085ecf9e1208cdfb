// One row of x, or a few, times the rows of Q, K and V. LANES invocations share a pair of rows that rotate together; Q is the
// result, K and V go into their caches. Each weight is read once, for all rows; each row's sums are added up in the same order
// whatever the rows beside it.
//!include lib/decode.wgsl
//!include lib/put.wgsl
//!if SEVERAL
//!include lib/few.wgsl
//!else
//!include lib/row.wgsl
//!end
//!decoder w
const PAIRS: u32 = WG / LANES;
//!if HALVES
//!if NEOX
var<workgroup> rotated: array<vec2<f32>, ROWS * PAIRS>;
//!end
//!end

// The first column of pair i and the distance of its second.
fn pair_of(i: u32) -> vec2<u32> {
//!if NEOX
    // Rotating channels pair with those half of them away, the others with their neighbours.
    let half = p.n_dims / 2u;
    let c = i % (p.head_dim / 2u);
    let head = (i / (p.head_dim / 2u)) * p.head_dim;
    return select(vec2<u32>(head + 2u * c, 1u), vec2<u32>(head + c, half), c < half);
//!else
    return vec2<u32>(2u * i, 1u);
//!end
}

// What follows the products of a pair: biases, and cosine and sine of the angle that it turns by.
struct Rest {
    bias: vec2<f32>,
    turn: vec2<f32>,
}

fn rest_of(row: u32, place: vec2<u32>) -> Rest {
    var rest = Rest(vec2<f32>(0.0), vec2<f32>(1.0, 0.0));
//!if BIAS
    rest.bias = vec2<f32>(bias[place.x], bias[place.x + place.y]);
//!end
//!if ROPE
    let channel = place.x % p.head_dim;
    if (channel < p.n_dims && place.x < p.q_cols + p.kv_cols) {
//!if NEOX
        let angle = channel;
//!else
        let angle = channel / 2u;
//!end
        let at = min(position_of(row), p.table_rows - 1u) * p.n_dims + min(2u * angle, p.n_dims - 2u);
        rest.turn = vec2<f32>(table[at], table[at + 1u]);
    }
//!end
    return rest;
}

fn ended(products: vec2<f32>, rest: Rest) -> vec2<f32> {
//!if ROPE
    let value = products + rest.bias;
    let c = rest.turn.x;
    let s = rest.turn.y;
    return vec2<f32>(value.x * c - value.y * s, value.x * s + value.y * c);
//!else
    return products + rest.bias;
//!end
}

// Puts a pair of a row where it belongs, if it is this invocation's; `own` is the row's number in the workgroup, all of whose
// invocations come here together.
fn put_pair(lane: u32, own: u32, row: u32, is_own: bool, pair: u32, place: vec2<u32>, value: vec2<f32>) {
    let puts = is_own && pair < p.pairs;
//!if HALVES
//!if NEOX
    // Of rotating channels the neighbours are those of the next pair.
    if (is_own) {
        rotated[own * PAIRS + lane / LANES] = value;
    }
    workgroupBarrier();
    let next = rotated[own * PAIRS + min(lane / LANES + 1u, PAIRS - 1u)];
    if (puts && place.y == 1u) {
        put(row, place.x, value);
    } else if (puts && pair % 2u == 0u) {
        put(row, place.x, vec2<f32>(value.x, next.x));
        put(row, place.x + place.y, vec2<f32>(value.y, next.y));
    }
//!else
    if (puts) {
        put(row, place.x, value);
    }
//!end
//!else
    if (puts) {
        put(row, place.x, value.x);
        put(row, place.x + place.y, value.y);
    }
//!end
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
//!if !SEVERAL
    let begun = row_begin(lane);
//!end
    let pair = (wid.y * groups.x + wid.x) * PAIRS + lane / LANES;
    let place = pair_of(min(pair, p.pairs - 1u));
    let l = lane % LANES;
//!if !SEVERAL
    // What follows the products is loaded before them: loads do not wait for loads.
    let rest = rest_of(0u, place);
//!end
//!if SEVERAL
    let first_row = few_first(wid.z);
    var acc: array<vec2<f32>, ROWS>;
    for (var g = l; g < p.w_groups; g += LANES) {
        let a = w_decode_row(place.x, g);
        let b = w_decode_row(place.x + place.y, g);
//!each ROW
        {
            let x32 = ready32(first_row + ROW, g);
            acc[ROW] += vec2<f32>(dot32(a, x32), dot32(b, x32));
        }
//!end
    }
//!else
    var acc = vec2<f32>(0.0);
    for (var first = 0u; first < p.w_groups; first += CHUNK) {
        row_stage(lane, first, begun);
        let end = min(first + CHUNK, p.w_groups);
        for (var g = first + l; g < end; g += LANES) {
            let x32 = row32(g, first, begun);
            acc += vec2<f32>(dot32(w_decode_row(place.x, g), x32), dot32(w_decode_row(place.x + place.y, g), x32));
        }
    }
//!end
//!if SEVERAL
//!each ROW
    few_leave(lane, ROW, acc[ROW]);
//!end
    workgroupBarrier();
    for (var first = 0u; first < ROWS; first += LANES) {
        let is_row = first + l < ROWS;
        let own = min(first + l, ROWS - 1u);
        let row = first_row + own;
        var value = vec2<f32>(0.0);
        if (is_row) {
            value = ended(few_sum(lane, own) * x[scale_at(row)].x, rest_of(row, place));
        }
        put_pair(lane, own, row, is_row, pair, place, value);
    }
//!else
    let sum = lanes_begin(lane, acc);
    let scale = row_scale(lane, begun);
    var value = vec2<f32>(0.0);
    if (l == 0u) {
        value = ended(lanes_end(lane, sum) * scale, rest);
    }
    put_pair(lane, 0u, 0u, l == 0u, pair, place, value);
//!end
}
