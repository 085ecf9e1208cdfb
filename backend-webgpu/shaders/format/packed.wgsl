// Elements 32 * group .. 32 * group + 31 of a row.
fn decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return decode32(row * GROUPS + group);
}
