// Those of the LANES invocations that share rows and a subgroup, too, add up without waiting for each other.
//!if SHUFFLED
const TOGETHER: u32 = min(LANES, SUBGROUP);
//!else
const TOGETHER: u32 = 1u;
//!end

fn together_sum(own: SUM) -> SUM {
    var sum = own;
//!if SHUFFLED
    for (var apart = 1u; apart < TOGETHER; apart <<= 1u) {
        sum += subgroupShuffleXor(sum, apart);
    }
//!end
    return sum;
}
