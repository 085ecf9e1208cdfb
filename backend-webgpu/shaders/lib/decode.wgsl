// What the decoders of the weight formats share.

// A binary16 in the low 16 bits. Drivers may flush subnormal halves to zero, and small scales are subnormal, so
// those are converted by integer arithmetic.
fn half_value(bits: u32) -> f32 {
    let magnitude = f32(bits & 0x3ffu) * 5.960464477539063e-8;
    let subnormal = select(magnitude, -magnitude, (bits & 0x8000u) != 0u);
    return select(unpack2x16float(bits & 0xffffu).x, subnormal, (bits & 0x7c00u) == 0u);
}

// Both halves of a word.
fn half_pair(word: u32) -> vec2<f32> {
    return vec2<f32>(half_value(word & 0xffffu), half_value(word >> 16u));
}

// Half i of the eight in a texel.
fn half_of(texel: vec4<u32>, i: u32) -> f32 {
    return half_value((texel[i >> 1u] >> ((i & 1u) * 16u)) & 0xffffu);
}

// The four lowest bits of a word, each of which stands for 2.
fn twos(word: u32) -> vec4<f32> {
    return vec4<f32>(((vec4<u32>(word) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u)) << vec4<u32>(1u));
}

// The four lowest pairs of bits of a word.
fn pairs(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u));
}

// The four lowest pairs of bits of a word with the four lowest bits of another above them.
fn threes(word: u32, bits: u32) -> vec4<f32> {
    let low = (vec4<u32>(word) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u);
    let high = (vec4<u32>(bits) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u);
    return vec4<f32>(low | (high << vec4<u32>(2u)));
}

// The four lowest nibbles of a word. Each is put where it is into the fraction of 2^23 and brought down again, exactly: that
// takes GPUs fewer steps than to move it and to convert an integer.
fn nibbles(word: u32) -> vec4<f32> {
    let whole = bitcast<vec4<f32>>((vec4<u32>(word) & vec4<u32>(15u, 240u, 3840u, 61440u)) | vec4<u32>(0x4b000000u));
    return whole * vec4<f32>(1.0, 0.0625, 0.00390625, 0.000244140625) - vec4<f32>(8388608.0, 524288.0, 32768.0, 2048.0);
}

// The four lowest nibbles of a word with the four lowest bits of another as their fifth bits.
fn fives(word: u32, bits: u32) -> vec4<f32> {
    let low = (vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    let high = (vec4<u32>(bits) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u);
    return vec4<f32>(low | (high << vec4<u32>(4u)));
}

// The four lowest nibbles of a word with the four lowest bit pairs of another above them.
fn sixes(word: u32, pairs: u32) -> vec4<f32> {
    let low = (vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    let high = (vec4<u32>(pairs) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u);
    return vec4<f32>(low | (high << vec4<u32>(4u)));
}

// The four signed bytes of a word.
fn signed_bytes(word: u32) -> vec4<f32> {
    return vec4<f32>(bitcast<vec4<i32>>(vec4<u32>(word) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u));
}
