// What the codes of a group are multiplied by, and what is added then: of its first half in x and y, of the second one
// in z and w.
fn w_scales(group: u32) -> vec4<f32> {
    // An f16 for each block.
    let block = group >> 0;
    let d = half_of(w[p.w_plane1 + (block >> 3u)], block & 7u);
    return vec4<f32>(d, 0.0, d, 0.0);
}

// Linear blocks: x = scale * (q - 8.0), with MINIMA x = scale * q + minimum.
fn w_value(q: vec4<f32>, scale: vec2<f32>) -> vec4<f32> {
    return scale.x * (q - 8.0);
}

// Codes are loaded before w_scales: there is more to do with them.
fn w_decode32(group: u32) -> array<vec4<f32>, 8> {
    let q = w[p.w_plane0 + group];
    let s = w_scales(group);
    return array<vec4<f32>, 8>(
        w_value(nibbles(q.x), s.xy), w_value(nibbles(q.x >> 16u), s.xy),
        w_value(nibbles(q.y), s.xy), w_value(nibbles(q.y >> 16u), s.xy),
        w_value(nibbles(q.z), s.zw), w_value(nibbles(q.z >> 16u), s.zw),
        w_value(nibbles(q.w), s.zw), w_value(nibbles(q.w >> 16u), s.zw));
}

// Elements 32 * group .. 32 * group + 31 of a row.
fn w_decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return w_decode32(row * p.w_groups + group);
}
// What the codes of a group are multiplied by, and what is added then: of its first half in x and y, of the second one
// in z and w.
fn w_scales(group: u32) -> vec4<f32> {
    // An f16 for each block.
    let block = group >> 0;
    let d = half_of(w[p.w_plane1 + (block >> 3u)], block & 7u);
    return vec4<f32>(d, 0.0, d, 0.0);
}

// Linear blocks as w_integers: x = scale * q + offset.
fn w_integers(group: u32) -> Integers {
    let s = w_scales(group);
    let q = w[p.w_plane0 + group];
    let low = vec4<u32>(nibble_bytes(q.x), nibble_bytes(q.y));
    let high = vec4<u32>(nibble_bytes(q.z), nibble_bytes(q.w));
    return Integers(low, high, s.xz, -8.0 * s.xz);
}
