// One row of x times the rows of Q, K and V. LANES invocations share a pair of rows that rotate together; Q is the result,
// K and V go into their caches.
//!include lib/decode.wgsl
//!include lib/put.wgsl
//!include lib/row.wgsl
//!decoder w
const PAIRS: u32 = WG / LANES;
//!if HALVES
//!if NEOX
var<workgroup> rotated: array<vec2<f32>, PAIRS>;
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

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let begun = row_begin(lane);
    let pair = (wid.y * groups.x + wid.x) * PAIRS + lane / LANES;
    let place = pair_of(min(pair, p.pairs - 1u));
    let l = lane % LANES;
    // What follows the products is loaded before them: loads do not wait for loads.
//!if BIAS
    let bias_pair = vec2<f32>(bias[place.x], bias[place.x + place.y]);
//!end
//!if ROPE
    let channel = place.x % p.head_dim;
    let rotates = channel < p.n_dims && place.x < p.q_cols + p.kv_cols;
//!if NEOX
    let angle = channel;
//!else
    let angle = channel / 2u;
//!end
    let at = min(step.position, p.table_rows - 1u) * p.n_dims + min(2u * angle, p.n_dims - 2u);
    let c = table[at];
    let s = table[at + 1u];
//!end
    var acc = vec2<f32>(0.0);
    for (var first = 0u; first < p.w_groups; first += CHUNK) {
        row_stage(lane, first, begun);
        let end = min(first + CHUNK, p.w_groups);
        for (var g = first + l; g < end; g += LANES) {
            let x32 = row32(g, first, begun);
            acc += vec2<f32>(dot32(w_decode_row(place.x, g), x32), dot32(w_decode_row(place.x + place.y, g), x32));
        }
    }
    let sum = lanes_begin(lane, acc);
    let scale = row_scale(lane, begun);
    var value = vec2<f32>(0.0);
    if (l == 0u) {
        value = lanes_end(lane, sum) * scale;
    }
//!if BIAS
    value += bias_pair;
//!end
//!if ROPE
    if (rotates) {
        value = vec2<f32>(value.x * c - value.y * s, value.x * s + value.y * c);
    }
//!end
//!if HALVES
//!if NEOX
    // Of rotating channels the neighbours are those of the next pair.
    if (l == 0u) {
        rotated[lane / LANES] = value;
    }
    workgroupBarrier();
    if (place.y != 1u) {
        let next = rotated[min(lane / LANES + 1u, PAIRS - 1u)];
        if (l == 0u && pair < p.pairs && pair % 2u == 0u) {
            put(0u, place.x, vec2<f32>(value.x, next.x));
            put(0u, place.x + place.y, vec2<f32>(value.y, next.y));
        }
        return;
    }
//!end
    if (l == 0u && pair < p.pairs) {
        put(0u, place.x, value);
    }
//!else
    if (l == 0u && pair < p.pairs) {
        put(0u, place.x, value.x);
        put(0u, place.x + place.y, value.y);
    }
//!end
}
