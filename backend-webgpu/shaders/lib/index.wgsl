//!include lib/position.wgsl

// The row of the table that row i of the result comes from; ids below 0 count as 0.
fn row_id(i: u32) -> u32 {
//!if IDS
    return u32(max(ids[i], 0));
//!end
//!if TOKENS
    return u32(max(ids[before_sequence(i, p.n_ctx) + min(position_of(i), p.n_ctx - 1u)], 0));
//!end
//!if POSITIONS
    return position_of(i);
//!end
//!if FIRST
    return i;
//!end
//!if LAST
    return max(step.rows, 1u) - 1u;
//!end
}
