// Linear blocks: x = scale * (q - ZERO), with MINIMA x = scale * q + minimum.
fn value(q: vec4<f32>, scale: vec2<f32>) -> vec4<f32> {
//!if MINIMA
    return scale.x * q + scale.y;
//!else
    return scale.x * (q - ZERO);
//!end
}

// Codes are loaded before scales: there is more to do with them.
fn decode32(group: u32) -> array<vec4<f32>, 8> {
//!if BITS8
    let a = weights[LOW + group * 2u];
    let b = weights[LOW + group * 2u + 1u];
    let s = scales(group);
    return array<vec4<f32>, 8>(
        value(signed_bytes(a.x), s.xy), value(signed_bytes(a.y), s.xy),
        value(signed_bytes(a.z), s.xy), value(signed_bytes(a.w), s.xy),
        value(signed_bytes(b.x), s.zw), value(signed_bytes(b.y), s.zw),
        value(signed_bytes(b.z), s.zw), value(signed_bytes(b.w), s.zw));
//!end
//!if BITS1
    let q = weights[LOW + (group >> 2u)][group & 3u];
    let s = scales(group);
    return array<vec4<f32>, 8>(
        value(twos(q), s.xy), value(twos(q >> 4u), s.xy),
        value(twos(q >> 8u), s.xy), value(twos(q >> 12u), s.xy),
        value(twos(q >> 16u), s.zw), value(twos(q >> 20u), s.zw),
        value(twos(q >> 24u), s.zw), value(twos(q >> 28u), s.zw));
//!end
//!if BITS2 || BITS3
    let two = weights[LOW + (group >> 1u)];
    let q = select(two.xy, two.zw, (group & 1u) == 1u);
//!end
//!if BITS2
    let s = scales(group);
    return array<vec4<f32>, 8>(
        value(pairs(q.x), s.xy), value(pairs(q.x >> 8u), s.xy),
        value(pairs(q.x >> 16u), s.xy), value(pairs(q.x >> 24u), s.xy),
        value(pairs(q.y), s.zw), value(pairs(q.y >> 8u), s.zw),
        value(pairs(q.y >> 16u), s.zw), value(pairs(q.y >> 24u), s.zw));
//!end
//!if BITS3
    let h = weights[HIGH + (group >> 2u)][group & 3u];
    let s = scales(group);
    return array<vec4<f32>, 8>(
        value(threes(q.x, h), s.xy), value(threes(q.x >> 8u, h >> 4u), s.xy),
        value(threes(q.x >> 16u, h >> 8u), s.xy), value(threes(q.x >> 24u, h >> 12u), s.xy),
        value(threes(q.y, h >> 16u), s.zw), value(threes(q.y >> 8u, h >> 20u), s.zw),
        value(threes(q.y >> 16u, h >> 24u), s.zw), value(threes(q.y >> 24u, h >> 28u), s.zw));
//!end
//!if BITS4 || BITS5 || BITS6
    let q = weights[LOW + group];
//!end
//!if BITS4
    let s = scales(group);
    return array<vec4<f32>, 8>(
        value(nibbles(q.x), s.xy), value(nibbles(q.x >> 16u), s.xy),
        value(nibbles(q.y), s.xy), value(nibbles(q.y >> 16u), s.xy),
        value(nibbles(q.z), s.zw), value(nibbles(q.z >> 16u), s.zw),
        value(nibbles(q.w), s.zw), value(nibbles(q.w >> 16u), s.zw));
//!end
//!if BITS5
    let h = weights[HIGH + (group >> 2u)][group & 3u];
    let s = scales(group);
    return array<vec4<f32>, 8>(
        value(fives(q.x, h), s.xy), value(fives(q.x >> 16u, h >> 4u), s.xy),
        value(fives(q.y, h >> 8u), s.xy), value(fives(q.y >> 16u, h >> 12u), s.xy),
        value(fives(q.z, h >> 16u), s.zw), value(fives(q.z >> 16u, h >> 20u), s.zw),
        value(fives(q.w, h >> 24u), s.zw), value(fives(q.w >> 16u, h >> 28u), s.zw));
//!end
//!if BITS6
    let pairs = weights[HIGH + (group >> 1u)];
    let h = select(pairs.xy, pairs.zw, (group & 1u) == 1u);
    let s = scales(group);
    return array<vec4<f32>, 8>(
        value(sixes(q.x, h.x), s.xy), value(sixes(q.x >> 16u, h.x >> 8u), s.xy),
        value(sixes(q.y, h.x >> 16u), s.xy), value(sixes(q.y >> 16u, h.x >> 24u), s.xy),
        value(sixes(q.z, h.y), s.zw), value(sixes(q.z >> 16u, h.y >> 8u), s.zw),
        value(sixes(q.w, h.y >> 16u), s.zw), value(sixes(q.w >> 16u, h.y >> 24u), s.zw));
//!end
}
