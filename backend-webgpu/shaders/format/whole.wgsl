// Rows of whole groups of f32.
fn decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    let i = row * (COLS / 4u) + group * 8u;
    return array<vec4<f32>, 8>(
        weights[i], weights[i + 1u], weights[i + 2u], weights[i + 3u],
        weights[i + 4u], weights[i + 5u], weights[i + 6u], weights[i + 7u]);
}
