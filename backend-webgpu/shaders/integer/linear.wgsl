// Linear blocks as integers: x = scale * q + offset.
fn integers(group: u32) -> Integers {
    let s = scales(group);
//!if BITS8
    let low = weights[LOW + group * 2u];
    let high = weights[LOW + group * 2u + 1u];
//!end
//!if BITS1
    let q = weights[LOW + (group >> 2u)][group & 3u];
    let low = vec4<u32>(bit_bytes(q, 1u), bit_bytes(q >> 8u, 1u));
    let high = vec4<u32>(bit_bytes(q >> 16u, 1u), bit_bytes(q >> 24u, 1u));
//!end
//!if BITS2 || BITS3
    let two = weights[LOW + (group >> 1u)];
    let q = select(two.xy, two.zw, (group & 1u) == 1u);
//!end
//!if BITS2
    let low = vec4<u32>(pair_bytes(q.x, 0u), pair_bytes(q.x >> 16u, 0u));
    let high = vec4<u32>(pair_bytes(q.y, 0u), pair_bytes(q.y >> 16u, 0u));
//!end
//!if BITS3
    let h = weights[HIGH + (group >> 2u)][group & 3u];
    let low = vec4<u32>(pair_bytes(q.x, 0u) | bit_bytes(h, 2u), pair_bytes(q.x >> 16u, 0u) | bit_bytes(h >> 8u, 2u));
    let high = vec4<u32>(pair_bytes(q.y, 0u) | bit_bytes(h >> 16u, 2u), pair_bytes(q.y >> 16u, 0u) | bit_bytes(h >> 24u, 2u));
//!end
//!if BITS4 || BITS5 || BITS6
    let q = weights[LOW + group];
//!end
//!if BITS4
    let low = vec4<u32>(nibble_bytes(q.x), nibble_bytes(q.y));
    let high = vec4<u32>(nibble_bytes(q.z), nibble_bytes(q.w));
//!end
//!if BITS5
    let h = weights[HIGH + (group >> 2u)][group & 3u];
    let low = vec4<u32>(nibble_bytes(q.x) | bit_bytes(h, 4u), nibble_bytes(q.y) | bit_bytes(h >> 8u, 4u));
    let high = vec4<u32>(nibble_bytes(q.z) | bit_bytes(h >> 16u, 4u), nibble_bytes(q.w) | bit_bytes(h >> 24u, 4u));
//!end
//!if BITS6
    let pairs = weights[HIGH + (group >> 1u)];
    let h = select(pairs.xy, pairs.zw, (group & 1u) == 1u);
    let low = vec4<u32>(nibble_bytes(q.x) | pair_bytes(h.x, 4u), nibble_bytes(q.y) | pair_bytes(h.x >> 16u, 4u));
    let high = vec4<u32>(nibble_bytes(q.z) | pair_bytes(h.y, 4u), nibble_bytes(q.w) | pair_bytes(h.y >> 16u, 4u));
//!end
//!if MINIMA
    return Integers(low, high, s.xz, s.yw);
//!else
    return Integers(low, high, s.xz, -ZERO * s.xz);
//!end
}
