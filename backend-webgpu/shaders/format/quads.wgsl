// Rows of whole vectors of four f32.
fn quad(row: u32, i: u32) -> vec4<f32> {
    let quads = COLS / 4u;
    return select(vec4<f32>(0.0), weights[row * quads + min(i, quads - 1u)], i < quads);
}

// Elements 32 * group .. 32 * group + 31 of a row, zeros beyond its end.
fn decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    let i = group * 8u;
    return array<vec4<f32>, 8>(
        quad(row, i), quad(row, i + 1u), quad(row, i + 2u), quad(row, i + 3u),
        quad(row, i + 4u), quad(row, i + 5u), quad(row, i + 6u), quad(row, i + 7u));
}
