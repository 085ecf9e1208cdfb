// The rows that an invocation walks down with a state at hand: all of the step or, with SEQUENCES, the one that is of the
// state's sequence.
//!include lib/position.wgsl

fn walk_begin(z: u32) -> u32 {
//!if SEQUENCES
    return z;
//!else
    return 0u;
//!end
}

fn walk_end(z: u32, rows: u32) -> u32 {
//!if SEQUENCES
    return min(z + 1u, rows);
//!else
    return rows;
//!end
}
