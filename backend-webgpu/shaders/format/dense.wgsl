fn dense4(row: u32, col: u32) -> vec4<f32> {
    var out = vec4<f32>(0.0);
    for (var i = 0u; i < 4u; i++) {
        if (col + i < COLS) {
            out[i] = weights[row * COLS + col + i];
        }
    }
    return out;
}

// Elements 32 * group .. 32 * group + 31 of a row, zeros beyond its end.
fn decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    let c = group * 32u;
    return array<vec4<f32>, 8>(
        dense4(row, c), dense4(row, c + 4u), dense4(row, c + 8u), dense4(row, c + 12u),
        dense4(row, c + 16u), dense4(row, c + 20u), dense4(row, c + 24u), dense4(row, c + 28u));
}
