// States in levels: blocks of 32 with a scale, and with MIN the number that level 0 is. A row of ROW words has the
// levels of all its blocks, WORDS words each; from word SCALES on their scales; from word MINS on their smallest numbers.
// Levels are bytes with BYTES, else nibbles; with FIFTHS the fifth bits are in a word of their own.
//!if WRITER
// A number as a half would hold it.
fn half_of(value: f32) -> f32 {
    let size = abs(value);
    let bits = bitcast<u32>(size);
    let near = (bits + 0xfffu + ((bits >> 13u) & 1u)) & 0xffffe000u;
    var rounded = select(bitcast<f32>(near), size * 3.0e38, near >= 0x47800000u);
    if (size < 6.1035156e-5) {
        rounded = round(size * 16777216.0) / 16777216.0;
    }
    return select(rounded, -rounded, value < 0.0);
}

fn level_of(value: f32, inverse: f32) -> u32 {
//!if BYTES
    let level = value * inverse;
    return bitcast<u32>(i32(sign(level) * floor(abs(level) + 0.5))) & 0xffu;
//!else
    return u32(clamp(floor(value * inverse + (f32(MIDDLE) + 0.5)), 0.0, f32(TOP)));
//!end
}

fn write(row: u32, block: u32, values: array<f32, 32>) {
    var numbers = values;
    var most = 0u;
    var farthest = 0.0;
    var low = numbers[0];
    var high = low;
    for (var i = 0u; i < 32u; i++) {
        // Magnitudes are ordered as their bits are; those of NaN and infinity come last.
        let size = bitcast<u32>(numbers[i]) & 0x7fffffffu;
        farthest = select(farthest, numbers[i], size > most);
        most = max(most, size);
        low = min(low, numbers[i]);
        high = max(high, numbers[i]);
    }
    // A block with a number that is not finite is NaN, so that nothing is hidden.
    let finite = most < 0x7f800000u;
//!if MIN
    let scale = (high - low) / f32(TOP);
    STATE[row * ROW + MINS + block] = select(0x7fc00000u, bitcast<u32>(half_of(low)), finite);
//!else
//!if BYTES
    let scale = abs(farthest) / 127.0;
//!else
    let scale = farthest / -f32(MIDDLE);
//!end
//!end
    STATE[row * ROW + SCALES + block] = select(0x7fc00000u, bitcast<u32>(half_of(scale)), finite);
    let inverse = select(1.0 / scale, 0.0, scale == 0.0);
    let first = row * ROW + WORDS * block;
//!if BYTES
    for (var w = 0u; w < 8u; w++) {
        var word = 0u;
        for (var i = 0u; i < 4u; i++) {
            word |= level_of(numbers[4u * w + i], inverse) << (8u * i);
        }
        STATE[first + w] = word;
    }
//!else
    var fifths = 0u;
    for (var w = 0u; w < 4u; w++) {
        var word = 0u;
        for (var i = 0u; i < 8u; i++) {
//!if MIN
            let level = level_of(numbers[8u * w + i] - low, inverse);
//!else
            let level = level_of(numbers[8u * w + i], inverse);
//!end
            word |= (level & 15u) << (4u * i);
            fifths |= (level >> 4u) << (8u * w + i);
        }
        STATE[first + w] = word;
    }
//!if FIFTHS
    STATE[first + 4u] = fifths;
//!end
//!end
}
//!else
// Numbers 4 * i to 4 * i + 3 of a row.
fn quad(row: u32, i: u32) -> vec4<f32> {
    let block = i / 8u;
    let scale = bitcast<f32>(STATE[row * ROW + SCALES + block]);
//!if BYTES
    let word = STATE[row * ROW + i];
    let levels = vec4<i32>(vec4<u32>(word << 24u, word << 16u, word << 8u, word)) >> vec4<u32>(24u);
    return scale * vec4<f32>(levels);
//!else
    let first = row * ROW + WORDS * block;
    let word = STATE[first + (i / 2u) % 4u] >> (16u * (i % 2u));
    var levels = (vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
//!if FIFTHS
    let fifths = STATE[first + 4u] >> (4u * (i % 8u));
    levels |= ((vec4<u32>(fifths) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u)) << vec4<u32>(4u);
//!end
//!if MIN
    return scale * vec4<f32>(levels) + bitcast<f32>(STATE[row * ROW + MINS + block]);
//!else
    return scale * (vec4<f32>(levels) - f32(MIDDLE));
//!end
//!end
}
//!end
