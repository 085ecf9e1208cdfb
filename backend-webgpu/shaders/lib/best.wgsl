// The largest value and its index, the first of equals, over the WG invocations of a workgroup.
const NONE: u32 = 0xffffffffu;
var<workgroup> best_value: array<f32, WG>;
var<workgroup> best_index: array<u32, WG>;

// Whether candidate a comes before candidate b.
fn beats(a: f32, ai: u32, b: f32, bi: u32) -> bool {
    return ai != NONE && (bi == NONE || a > b || (a == b && ai < bi));
}

// Leaves the winner in element 0 of best_value and best_index.
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
