// Sums over the LANES invocations that share rows, for each of them: what lanes_begin returns goes to lanes_end, and between
// them is lanes_meet, or another barrier.
//!include lib/together.wgsl

var<workgroup> lanes_sums: array<SUM, WG / TOGETHER>;

fn lanes_begin(lane: u32, own: SUM) -> SUM {
    let sum = together_sum(own);
    if (LANES > TOGETHER && lane % TOGETHER == 0u) {
        lanes_sums[lane / TOGETHER] = sum;
    }
    return sum;
}

fn lanes_meet() {
    if (LANES > TOGETHER) {
        workgroupBarrier();
    }
}

fn lanes_end(lane: u32, begun: SUM) -> SUM {
    if (LANES == TOGETHER) {
        return begun;
    }
    let first = lane / LANES * (LANES / TOGETHER);
    var sum = lanes_sums[first];
    for (var i = 1u; i < LANES / TOGETHER; i++) {
        sum += lanes_sums[first + i];
    }
    return sum;
}
