// What the codes of a group are multiplied by, and what is added then: of its first half in x and y, of the second one
// in z and w.
fn w_scales(group: u32) -> vec4<f32> {
    // A texel for 8 groups: two f16, and 6 bits for each scale and minimum. The last four groups have their high bits
    // in the bytes of the first four.
    let head = w[p.w_plane2 + (group >> 3u)];
    let shift = (group & 3u) * 8u;
    let k0 = (head.y >> shift) & 255u;
    let k1 = (head.z >> shift) & 255u;
    let k2 = (head.w >> shift) & 255u;
    let late = (group & 4u) != 0u;
    let scale = select(k0 & 63u, (k2 & 15u) | ((k0 >> 6u) << 4u), late);
    let minimum = select(k1 & 63u, (k2 >> 4u) | ((k1 >> 6u) << 4u), late);
    let both = half_pair(head.x) * vec2<f32>(vec2<u32>(scale, minimum));
    return vec4<f32>(both.x, -both.y, both.x, -both.y);
}

// Linear blocks: x = scale * (q - 0.0), with MINIMA x = scale * q + minimum.
fn w_value(q: vec4<f32>, scale: vec2<f32>) -> vec4<f32> {
    return scale.x * q + scale.y;
}

// Codes are loaded before w_scales: there is more to do with them.
fn w_decode32(group: u32) -> array<vec4<f32>, 8> {
    let q = w[p.w_plane0 + group];
    let h = w[p.w_plane1 + (group >> 2u)][group & 3u];
    let s = w_scales(group);
    return array<vec4<f32>, 8>(
        w_value(fives(q.x, h), s.xy), w_value(fives(q.x >> 16u, h >> 4u), s.xy),
        w_value(fives(q.y, h >> 8u), s.xy), w_value(fives(q.y >> 16u, h >> 12u), s.xy),
        w_value(fives(q.z, h >> 16u), s.zw), w_value(fives(q.z >> 16u, h >> 20u), s.zw),
        w_value(fives(q.w, h >> 24u), s.zw), w_value(fives(q.w >> 16u, h >> 28u), s.zw));
}

// Elements 32 * group .. 32 * group + 31 of a row.
fn w_decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return w_decode32(row * p.w_groups + group);
}
// What the codes of a group are multiplied by, and what is added then: of its first half in x and y, of the second one
// in z and w.
fn w_scales(group: u32) -> vec4<f32> {
    // A texel for 8 groups: two f16, and 6 bits for each scale and minimum. The last four groups have their high bits
    // in the bytes of the first four.
    let head = w[p.w_plane2 + (group >> 3u)];
    let shift = (group & 3u) * 8u;
    let k0 = (head.y >> shift) & 255u;
    let k1 = (head.z >> shift) & 255u;
    let k2 = (head.w >> shift) & 255u;
    let late = (group & 4u) != 0u;
    let scale = select(k0 & 63u, (k2 & 15u) | ((k0 >> 6u) << 4u), late);
    let minimum = select(k1 & 63u, (k2 >> 4u) | ((k1 >> 6u) << 4u), late);
    let both = half_pair(head.x) * vec2<f32>(vec2<u32>(scale, minimum));
    return vec4<f32>(both.x, -both.y, both.x, -both.y);
}

// Linear blocks as w_integers: x = scale * q + offset.
fn w_integers(group: u32) -> Integers {
    let s = w_scales(group);
    let q = w[p.w_plane0 + group];
    let h = w[p.w_plane1 + (group >> 2u)][group & 3u];
    let low = vec4<u32>(nibble_bytes(q.x) | bit_bytes(h, 4u), nibble_bytes(q.y) | bit_bytes(h >> 8u, 4u));
    let high = vec4<u32>(nibble_bytes(q.z) | bit_bytes(h >> 16u, 4u), nibble_bytes(q.w) | bit_bytes(h >> 24u, 4u));
    return Integers(low, high, s.xz, s.yw);
}
