// The largest value and its index, the first of equals, over the WG invocations of a workgroup.
//!include lib/finite.wgsl
const NONE: u32 = 0xffffffffu;
// In place of an index: some value is not finite. It comes before all others.
const BROKEN: u32 = 0xfffffffeu;

// Whether candidate a comes before candidate b.
fn beats(a: f32, ai: u32, b: f32, bi: u32) -> bool {
    if (ai == NONE || bi == BROKEN) {
        return false;
    }
    return bi == NONE || ai == BROKEN || a > b || (a == b && ai < bi);
}

// What follows leaves the winner in element 0 of best_value and best_index.
//!if SUBGROUPS
const BESTS: u32 = WG / SUBGROUP;
var<workgroup> best_value: array<f32, BESTS>;
var<workgroup> best_index: array<u32, BESTS>;

fn workgroup_best(lane: u32, value: f32, index: u32) {
    var best = value;
    var at = index;
    for (var distance = 1u; distance < SUBGROUP; distance <<= 1u) {
        let other = subgroupShuffleXor(best, distance);
        let other_at = subgroupShuffleXor(at, distance);
        if (beats(other, other_at, best, at)) {
            best = other;
            at = other_at;
        }
    }
    if (lane % SUBGROUP == 0u) {
        best_value[lane / SUBGROUP] = best;
        best_index[lane / SUBGROUP] = at;
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
//!else
var<workgroup> best_value: array<f32, WG>;
var<workgroup> best_index: array<u32, WG>;

fn workgroup_best(lane: u32, value: f32, index: u32) {
    best_value[lane] = value;
    best_index[lane] = index;
    workgroupBarrier();
    for (var s = WG / 2u; s > 0u; s >>= 1u) {
        if (lane < s && beats(best_value[lane + s], best_index[lane + s], best_value[lane], best_index[lane])) {
            best_value[lane] = best_value[lane + s];
            best_index[lane] = best_index[lane + s];
        }
        workgroupBarrier();
    }
}
//!end
