// Where the rows of a step are in their texts. With SEQUENCES each row is of a sequence of its own, and states hold those of
// all sequences one after another.
fn position_of(row: u32) -> u32 {
//!if SEQUENCES
    return step.each[2u * row].x;
//!else
    return step.position + row;
//!end
}

// Rows of a state before those of the row's sequence; each has `capacity` of them.
fn before_sequence(row: u32, capacity: u32) -> u32 {
//!if SEQUENCES
    return step.each[2u * row].y * capacity;
//!else
    return 0u;
//!end
}
