// What kernels of experts share: whose matrix a choice means. Weights in several chunks take a dispatch for each, which
// makes what its chunk has.

fn expert(choice: u32) -> u32 {
//!if IN_TURN
    return choice % p.turns;
//!else
    return min(u32(max(ids[choice], 0)), p.experts - 1u);
//!end
}
