// Sum and maximum over the WG invocations of a workgroup; every invocation gets the result. First each SPAN of them is
// reduced, then the spans.
//!if SUBGROUPS
// A span is in one subgroup, so one barrier suffices. The next reduction takes the other half of the memory: it begins
// while this one's results are still being read.
const SPAN: u32 = SUBGROUP;
var<workgroup> reduce_few: array<f32, 2u * WG / SPAN>;
var<private> reduce_half: u32;

fn reduce_leave(lane: u32, value: f32) -> u32 {
    reduce_half = WG / SPAN - reduce_half;
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
//!else
// Two rounds with a barrier each are quicker than a tree with one for every halving.
const SPAN: u32 = 8u;
var<workgroup> reduce_all: array<f32, WG>;
var<workgroup> reduce_few: array<f32, WG / SPAN>;

fn reduce_sums(lane: u32, value: f32) -> u32 {
    reduce_all[lane] = value;
    workgroupBarrier();
    if (lane < WG / SPAN) {
        var sum = reduce_all[lane * SPAN];
        for (var i = 1u; i < SPAN; i++) {
            sum += reduce_all[lane * SPAN + i];
        }
        reduce_few[lane] = sum;
    }
    return 0u;
}

fn reduce_maxima(lane: u32, value: f32) -> u32 {
    reduce_all[lane] = value;
    workgroupBarrier();
    if (lane < WG / SPAN) {
        var most = reduce_all[lane * SPAN];
        for (var i = 1u; i < SPAN; i++) {
            most = max(most, reduce_all[lane * SPAN + i]);
        }
        reduce_few[lane] = most;
    }
    return 0u;
}
//!end

fn workgroup_sum(lane: u32, value: f32) -> f32 {
    let first = reduce_sums(lane, value);
    workgroupBarrier();
    var total = reduce_few[first];
    for (var i = 1u; i < WG / SPAN; i++) {
        total += reduce_few[first + i];
    }
    return total;
}

fn workgroup_max(lane: u32, value: f32) -> f32 {
    let first = reduce_maxima(lane, value);
    workgroupBarrier();
    var highest = reduce_few[first];
    for (var i = 1u; i < WG / SPAN; i++) {
        highest = max(highest, reduce_few[first + i]);
    }
    return highest;
}
