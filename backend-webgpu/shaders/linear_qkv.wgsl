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
//!if !SEVERAL
    let begun = row_begin(lane);
//!end
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
    var turn: array<vec2<f32>, ROWS>;
//!each ROW
    {
        let at = min(position_of(ROW), p.table_rows - 1u) * p.n_dims + min(2u * angle, p.n_dims - 2u);
        turn[ROW] = vec2<f32>(table[at], table[at + 1u]);
    }
//!end
//!end
//!if SEVERAL
    var acc: array<vec2<f32>, ROWS>;
    for (var g = l; g < p.w_groups; g += LANES) {
        let a = w_decode_row(place.x, g);
        let b = w_decode_row(place.x + place.y, g);
//!each ROW
        {
            let x32 = ready32(ROW, g);
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
//!each ROW
    {
//!if SEVERAL
        let sum = lanes_begin(lane, acc[ROW]);
        lanes_meet();
        let scale = x[scale_at(ROW)].x;
//!else
        let sum = lanes_begin(lane, acc);
        let scale = row_scale(lane, begun);
//!end
        var value = vec2<f32>(0.0);
        if (l == 0u) {
            value = lanes_end(lane, sum) * scale;
        }
//!if BIAS
        value += bias_pair;
//!end
//!if ROPE
        if (rotates) {
            let c = turn[ROW].x;
            let s = turn[ROW].y;
            value = vec2<f32>(value.x * c - value.y * s, value.x * s + value.y * c);
        }
//!end
        let puts = l == 0u && pair < p.pairs;
//!if HALVES
//!if NEOX
        // Of rotating channels the neighbours are those of the next pair.
        if (l == 0u) {
            rotated[lane / LANES] = value;
        }
        workgroupBarrier();
        let next = rotated[min(lane / LANES + 1u, PAIRS - 1u)];
        if (puts && place.y == 1u) {
            put(ROW, place.x, value);
        } else if (puts && pair % 2u == 0u) {
            put(ROW, place.x, vec2<f32>(value.x, next.x));
            put(ROW, place.x + place.y, vec2<f32>(value.y, next.y));
        }
//!if SEVERAL
        workgroupBarrier();
//!end
//!else
        if (puts) {
            put(ROW, place.x, value);
        }
//!end
//!else
        if (puts) {
            put(ROW, place.x, value.x);
            put(ROW, place.x + place.y, value.y);
        }
//!end
//!if SEVERAL
        // The next row's sums take the place of this one's.
        lanes_meet();
//!end
    }
//!end
}
