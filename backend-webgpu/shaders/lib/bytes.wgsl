// What the weight formats' integers are unpacked to.
//!include lib/decode.wgsl

// A group of 32 weights as integers: x = scale * q + offset, with a scale and an offset for each half of the group.
struct Integers {
    low: vec4<u32>,
    high: vec4<u32>,
    scales: vec2<f32>,
    offsets: vec2<f32>,
}

// Eight nibbles as the bytes of two words, in order.
fn nibble_bytes(word: u32) -> vec2<u32> {
    let halves = vec2<u32>(word & 0xffffu, word >> 16u);
    let pairs = (halves | (halves << vec2<u32>(8u))) & vec2<u32>(0x00ff00ffu);
    return (pairs | (pairs << vec2<u32>(4u))) & vec2<u32>(0x0f0f0f0fu);
}

// The bits 0 .. 7 of a word as the bytes of two words, shifted to their place.
fn bit_bytes(bits: u32, place: u32) -> vec2<u32> {
    let four = vec2<u32>(bits & 15u, (bits >> 4u) & 15u);
    // The products do not carry: every bit meets its place once.
    return ((four * vec2<u32>(0x00204081u)) & vec2<u32>(0x01010101u)) << vec2<u32>(place);
}

// The bit pairs 0 .. 7 of a word as the bytes of two words, shifted to their place.
fn pair_bytes(pairs: u32, place: u32) -> vec2<u32> {
    let four = vec2<u32>(pairs & 255u, (pairs >> 8u) & 255u);
    let each = (four | (four << vec2<u32>(6u)) | (four << vec2<u32>(12u)) | (four << vec2<u32>(18u))) & vec2<u32>(0x03030303u);
    return each << vec2<u32>(place);
}
