// Element i of x after the rotation of its head; position is that of its row, col its column. With NORM elements are
// normed before.
//!if !NORM
fn normed(i: u32, col: u32) -> f32 {
    return x[i];
}

//!end
fn rotated(i: u32, col: u32, position: u32) -> f32 {
    let channel = col % p.head_dim;
    if (channel >= p.n_dims) {
        return normed(i, col);
    }
//!if NEOX
    let half = p.n_dims / 2u;
    let pair = channel % half;
    let second = channel >= half;
    let distance = half;
//!else
    let pair = channel / 2u;
    let second = channel % 2u == 1u;
    let distance = 1u;
//!end
    let at = min(position, p.table_rows - 1u) * p.n_dims + 2u * pair;
    let c = table[at];
    let s = table[at + 1u];
    if (second) {
        return normed(i - distance, col - distance) * s + normed(i, col) * c;
    }
    return normed(i, col) * c - normed(i + distance, col + distance) * s;
}
