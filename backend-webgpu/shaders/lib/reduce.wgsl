// Sum and maximum over the WG invocations of a workgroup; every invocation gets the result.
var<workgroup> reduce_scratch: array<f32, WG>;

fn workgroup_sum(lane: u32, value: f32) -> f32 {
    reduce_scratch[lane] = value;
    workgroupBarrier();
    for (var s = WG / 2u; s > 0u; s >>= 1u) {
        if (lane < s) {
            reduce_scratch[lane] += reduce_scratch[lane + s];
        }
        workgroupBarrier();
    }
    let total = reduce_scratch[0];
    workgroupBarrier();
    return total;
}

fn workgroup_max(lane: u32, value: f32) -> f32 {
    reduce_scratch[lane] = value;
    workgroupBarrier();
    for (var s = WG / 2u; s > 0u; s >>= 1u) {
        if (lane < s) {
            reduce_scratch[lane] = max(reduce_scratch[lane], reduce_scratch[lane + s]);
        }
        workgroupBarrier();
    }
    let highest = reduce_scratch[0];
    workgroupBarrier();
    return highest;
}
