// What the codes of a group are multiplied by, and what is added then: of its first half in x and y, of the second one
// in z and w.
//!if MINIFLOATS
// Half of a float with 4 bits of exponent and 3 of fraction; all ones stand for 0.
fn minifloat(byte: u32) -> f32 {
    let exponent = (byte >> 3u) & 15u;
    let small = f32(byte & 7u) / 1024.0;
    let value = select(bitcast<f32>(((exponent + 119u) << 23u) | ((byte & 7u) << 20u)), small, exponent == 0u);
    return select(value, 0.0, byte == 127u);
}

//!end
fn scales(group: u32) -> vec4<f32> {
//!if ONE
    // An f16 for each block.
    let block = group >> GROUP_SHIFT;
    let d = half_of(weights[SCALES + (block >> 3u)], block & 7u);
    return vec4<f32>(d, 0.0, d, 0.0);
//!end
//!if TWO
    // Two f16 for each group: scale and minimum.
    return half_pair(weights[SCALES + (group >> 2u)][group & 3u]).xyxy;
//!end
//!if SIXES
    // A texel for 8 groups: two f16, and 6 bits for each scale and minimum. The last four groups have their high bits
    // in the bytes of the first four.
    let head = weights[SCALES + (group >> 3u)];
    let shift = (group & 3u) * 8u;
    let k0 = (head.y >> shift) & 255u;
    let k1 = (head.z >> shift) & 255u;
    let k2 = (head.w >> shift) & 255u;
    let late = (group & 4u) != 0u;
    let scale = select(k0 & 63u, (k2 & 15u) | ((k0 >> 6u) << 4u), late);
    let minimum = select(k1 & 63u, (k2 >> 4u) | ((k1 >> 6u) << 4u), late);
    let both = half_pair(head.x) * vec2<f32>(vec2<u32>(scale, minimum));
    return vec4<f32>(both.x, -both.y, both.x, -both.y);
//!end
//!if BYTES
    // A texel of signed bytes for 8 groups, two for each, and an f16 for all of them.
    let pair = weights[SCALES + (group >> 3u)][(group & 7u) >> 1u] >> ((group & 1u) * 16u);
    let both = half_of(weights[FACTORS + (group >> 6u)], (group >> 3u) & 7u) * signed_bytes(pair).xy;
    return vec4<f32>(both.x, 0.0, both.y, 0.0);
//!end
//!if NIBBLES
    // A texel of bytes for 8 groups, two for each, with a scale below and a minimum above; and two f16 for all of them.
    let pair = weights[SCALES + (group >> 3u)][(group & 7u) >> 1u] >> ((group & 1u) * 16u);
    let d = half_pair(weights[FACTORS + (group >> 5u)][(group >> 3u) & 3u]);
    return nibbles(pair) * vec4<f32>(d.x, -d.y, d.x, -d.y);
//!end
//!if SIX_BITS_16
    // Three words for 8 groups: lower nibbles of sixteen scales, the last eight above the others; then their upper
    // pairs, of each fourth one in a byte. Scales are 32 less. An f16 for all of them.
    let word = (group >> 3u) * 3u;
    let sub = (group & 7u) * 2u;
    let low_at = word + ((sub >> 2u) & 1u);
    let low = weights[SCALES + (low_at >> 2u)][low_at & 3u] >> (8u * (sub & 3u) + 4u * (sub >> 3u));
    let high_at = word + 2u;
    let high = weights[SCALES + (high_at >> 2u)][high_at & 3u] >> (8u * (sub & 3u) + 2u * (sub >> 2u));
    let pairs = vec2<u32>(high, high >> 8u) & vec2<u32>(3u);
    let six = (vec2<u32>(low, low >> 8u) & vec2<u32>(15u)) | (pairs << vec2<u32>(4u));
    let both = half_of(weights[FACTORS + (group >> 6u)], (group >> 3u) & 7u) * (vec2<f32>(six) - 32.0);
    return vec4<f32>(both.x, 0.0, both.y, 0.0);
//!end
//!if SIX_BITS_32
    // Two words for 8 groups: an f16 and the upper pairs of bits; then the lower nibbles. Scales are 32 less.
    let texel = weights[SCALES + (group >> 4u)];
    let head = select(texel.xy, texel.zw, (group & 8u) != 0u);
    let sub = group & 7u;
    let six = ((head.y >> (4u * sub)) & 15u) | (((head.x >> (16u + 2u * sub)) & 3u) << 4u);
    let d = half_value(head.x & 0xffffu) * (f32(six) - 32.0);
    return vec4<f32>(d, 0.0, d, 0.0);
//!end
//!if EXPONENT
    // A byte for each group: the exponent of a power of two, more by 128.
    let e = (weights[SCALES + (group >> 4u)][(group >> 2u) & 3u] >> (8u * (group & 3u))) & 255u;
    let d = bitcast<f32>(select((max(e, 1u) - 1u) << 23u, 0x00200000u << min(e, 1u), e < 2u));
    return vec4<f32>(d, 0.0, d, 0.0);
//!end
//!if MINIFLOATS
    // Two bytes for each group.
    let pair = weights[SCALES + (group >> 3u)][(group >> 1u) & 3u] >> (16u * (group & 1u));
    return vec4<f32>(minifloat(pair & 255u), 0.0, minifloat((pair >> 8u) & 255u), 0.0);
//!end
}
