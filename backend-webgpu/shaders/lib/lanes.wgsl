// Sums over the LANES invocations that share a row, for the first of them: what lanes_begin returns goes to lanes_end, and
// between them is lanes_meet, or another barrier.
//!if SHUFFLED
// They share a subgroup, too, so that nothing has to wait.
fn lanes_begin(lane: u32, own: SUM) -> SUM {
    var sum = own;
    for (var apart = 1u; apart < LANES; apart <<= 1u) {
        sum += subgroupShuffleXor(sum, apart);
    }
    return sum;
}

fn lanes_meet() {}

fn lanes_end(lane: u32, begun: SUM) -> SUM {
    return begun;
}
//!else
var<workgroup> lanes_own: array<SUM, WG>;

fn lanes_begin(lane: u32, own: SUM) -> SUM {
    if (LANES > 1u) {
        lanes_own[lane] = own;
    }
    return own;
}

fn lanes_meet() {
    if (LANES > 1u) {
        workgroupBarrier();
    }
}

fn lanes_end(lane: u32, begun: SUM) -> SUM {
    var sum = begun;
    for (var i = 1u; i < LANES; i++) {
        sum += lanes_own[lane + i];
    }
    return sum;
}
//!end
