// argmax subgroups vec4 append
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
    rows: u32,
    cols: u32,
    n_ctx: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> out: array<i32>;

fn is_finite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}
const NONE: u32 = 0xffffffffu;
const BROKEN: u32 = 0xfffffffeu;

fn beats(a: f32, ai: u32, b: f32, bi: u32) -> bool {
    if (ai == NONE || bi == BROKEN) {
        return false;
    }
    return bi == NONE || ai == BROKEN || a > b || (a == b && ai < bi);
}

const BESTS: u32 = 256u / 8u;
var<workgroup> best_value: array<f32, BESTS>;
var<workgroup> best_index: array<u32, BESTS>;

fn workgroup_best(lane: u32, value: f32, index: u32) {
    var best = value;
    var at = index;
    for (var distance = 1u; distance < 8u; distance <<= 1u) {
        let other = subgroupShuffleXor(best, distance);
        let other_at = subgroupShuffleXor(at, distance);
        if (beats(other, other_at, best, at)) {
            best = other;
            at = other_at;
        }
    }
    if (lane % 8u == 0u) {
        best_value[lane / 8u] = best;
        best_index[lane / 8u] = at;
    }
    workgroupBarrier();
    if (lane == 0u) {
        for (var s = 1u; s < BESTS; s++) {
            if (beats(best_value[s], best_index[s], best_value[0], best_index[0])) {
                best_value[0] = best_value[s];
                best_index[0] = best_index[s];
            }
        }
    }
    workgroupBarrier();
}

@compute @workgroup_size(256u)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let row = wid.y * groups.x + wid.x;
    if (row >= p.rows) {
        return;
    }
    var value = 0.0;
    var index = NONE;
    var finite = true;
    let quads = p.cols / 4u;
    for (var q = lane; q < quads; q += 8u * 256u) {
        var loaded = array<vec4<f32>, 8u>();
        for (var i = 0u; i < 8u; i++) {
            loaded[i] = x[row * quads + min(q + i * 256u, quads - 1u)];
        }
        for (var i = 0u; i < 8u; i++) {
            let c = 4u * min(q + i * 256u, quads - 1u);
            let bits = bitcast<vec4<u32>>(loaded[i]) & vec4<u32>(0x7f800000u);
            finite = finite && all(bits != vec4<u32>(0x7f800000u));
            for (var e = 0u; e < 4u; e++) {
                if (index == NONE || loaded[i][e] > value) {
                    value = loaded[i][e];
                    index = c + e;
                }
            }
        }
    }
    workgroup_best(lane, value, select(BROKEN, index, finite));
    if (lane == 0u) {
        let id = select(i32(min(best_index[0], p.cols - 1u)), -1, best_index[0] == BROKEN);
        let next = step.position + step.rows;
        if (next < p.n_ctx) {
            out[next] = id;
        }
    }
}
