// Coordinates of operands from those of results.

// A coordinate that is shifted, and goes round.
fn around(d: u32, shift: u32, dim: u32) -> u32 {
    return (d + shift) % dim;
}

// Whether a coordinate is among `len` from `first` on. What lies before wraps to large numbers.
fn within(d: u32, first: u32, len: u32) -> bool {
    return d - first < len;
}
