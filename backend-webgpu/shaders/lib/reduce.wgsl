// Sum and maximum over the WG invocations of a workgroup; every invocation gets the result. Two rounds with a barrier each
// are quicker than a tree with one for every halving.
const SPAN: u32 = 8u;
var<workgroup> reduce_all: array<f32, WG>;
var<workgroup> reduce_few: array<f32, WG / SPAN>;

fn workgroup_sum(lane: u32, value: f32) -> f32 {
    reduce_all[lane] = value;
    workgroupBarrier();
    if (lane < WG / SPAN) {
        var sum = reduce_all[lane * SPAN];
        for (var i = 1u; i < SPAN; i++) {
            sum += reduce_all[lane * SPAN + i];
        }
        reduce_few[lane] = sum;
    }
    workgroupBarrier();
    var total = reduce_few[0];
    for (var i = 1u; i < WG / SPAN; i++) {
        total += reduce_few[i];
    }
    return total;
}

fn workgroup_max(lane: u32, value: f32) -> f32 {
    reduce_all[lane] = value;
    workgroupBarrier();
    if (lane < WG / SPAN) {
        var most = reduce_all[lane * SPAN];
        for (var i = 1u; i < SPAN; i++) {
            most = max(most, reduce_all[lane * SPAN + i]);
        }
        reduce_few[lane] = most;
    }
    workgroupBarrier();
    var highest = reduce_few[0];
    for (var i = 1u; i < WG / SPAN; i++) {
        highest = max(highest, reduce_few[i]);
    }
    return highest;
}
