// Element i of x after the rotation of its head; position is that of its row, col its column.
fn rotated(i: u32, col: u32, position: u32) -> f32 {
    let channel = col % p.head_dim;
    if (channel >= p.n_dims) {
        return x[i];
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
        return x[i - distance] * s + x[i] * c;
    }
    return x[i] * c - x[i + distance] * s;
}
