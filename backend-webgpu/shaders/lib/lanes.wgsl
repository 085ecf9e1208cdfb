// Sums over the LANES invocations that share rows, for each of them: what lanes_begin returns goes to lanes_end, and between
// them is lanes_meet, or another barrier.
//!if SHUFFLED
// Those that share a subgroup, too, do not wait for each other.
const TOGETHER: u32 = min(LANES, SUBGROUP);
//!else
const TOGETHER: u32 = 1u;
//!end
var<workgroup> lanes_sums: array<SUM, WG / TOGETHER>;

fn lanes_begin(lane: u32, own: SUM) -> SUM {
    var sum = own;
//!if SHUFFLED
    for (var apart = 1u; apart < TOGETHER; apart <<= 1u) {
        sum += subgroupShuffleXor(sum, apart);
    }
//!end
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
