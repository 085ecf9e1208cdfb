// States in bytes: blocks of 32 with a scale. A row of ROW words has the bytes of all its blocks, then their scales from
// word SCALES on.
//!if WRITER
// A scale as a half would hold it.
fn half_of(scale: f32) -> f32 {
    if (scale < 6.1035156e-5) {
        return round(scale * 16777216.0) / 16777216.0;
    }
    let bits = bitcast<u32>(scale);
    return bitcast<f32>((bits + 0xfffu + ((bits >> 13u) & 1u)) & 0xffffe000u);
}

fn write(row: u32, block: u32, values: array<f32, 32>) {
    var numbers = values;
    // Magnitudes are ordered as their bits are; those of NaN and infinity come last.
    var most = 0u;
    for (var i = 0u; i < 32u; i++) {
        most = max(most, bitcast<u32>(numbers[i]) & 0x7fffffffu);
    }
    let scale = bitcast<f32>(most) / 127.0;
    let inverse = select(0.0, 1.0 / scale, scale > 0.0);
    for (var w = 0u; w < 8u; w++) {
        var word = 0u;
        for (var i = 0u; i < 4u; i++) {
            let level = numbers[4u * w + i] * inverse;
            let byte = i32(sign(level) * floor(abs(level) + 0.5));
            word |= (bitcast<u32>(byte) & 0xffu) << (8u * i);
        }
        STATE[row * ROW + 8u * block + w] = word;
    }
    // A block with a number that is not finite is NaN, so that nothing is hidden.
    STATE[row * ROW + SCALES + block] = select(bitcast<u32>(half_of(scale)), 0x7fc00000u, most >= 0x7f800000u);
}
//!else
// Numbers 4 * i to 4 * i + 3 of a row.
fn quad(row: u32, i: u32) -> vec4<f32> {
    let word = STATE[row * ROW + i];
    let bytes = vec4<i32>(vec4<u32>(word << 24u, word << 16u, word << 8u, word)) >> vec4<u32>(24u);
    return bitcast<f32>(STATE[row * ROW + SCALES + i / 8u]) * vec4<f32>(bytes);
}
//!end
