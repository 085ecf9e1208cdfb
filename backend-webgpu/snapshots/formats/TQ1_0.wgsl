fn w_scales(group: u32) -> vec4<f32> {
    let block = group >> 3;
    let d = half_of(w[p.w_plane1 + (block >> 3u)], block & 7u);
    return vec4<f32>(d, 0.0, d, 0.0);
}


fn w_digits(group: u32, i: u32) -> vec4<u32> {
    let quad = (group & 7u) * 8u + i;
    let late = quad >= 60u;
    let middle = quad >= 40u && !late;
    let word = select(select(quad & 7u, 8u + (quad & 3u), middle), 12u, late);
    let n = select(select(quad >> 3u, (quad - 40u) >> 2u, middle), quad - 60u, late);
    let power = (select(1u, 3u, (n & 1u) != 0u)) * select(1u, 9u, (n & 2u) != 0u) * select(1u, 81u, n == 4u);
    let at = (group >> 3u) * 13u + word;
    let bytes = (vec4<u32>(w[p.w_plane0 + (at >> 2u)][at & 3u]) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
    return (((bytes * power) & vec4<u32>(255u)) * 3u) >> vec4<u32>(8u);
}

fn w_decode32(group: u32) -> array<vec4<f32>, 8> {
    let d = w_scales(group).x;
    var out: array<vec4<f32>, 8>;
    for (var i = 0u; i < 8u; i++) {
        out[i] = d * (vec4<f32>(w_digits(group, i)) - 1.0);
    }
    return out;
}

fn w_decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return w_decode32(row * p.w_groups + group);
}
fn w_scales(group: u32) -> vec4<f32> {
    let block = group >> 3;
    let d = half_of(w[p.w_plane1 + (block >> 3u)], block & 7u);
    return vec4<f32>(d, 0.0, d, 0.0);
}


fn w_digits(group: u32, i: u32) -> vec4<u32> {
    let quad = (group & 7u) * 8u + i;
    let late = quad >= 60u;
    let middle = quad >= 40u && !late;
    let word = select(select(quad & 7u, 8u + (quad & 3u), middle), 12u, late);
    let n = select(select(quad >> 3u, (quad - 40u) >> 2u, middle), quad - 60u, late);
    let power = (select(1u, 3u, (n & 1u) != 0u)) * select(1u, 9u, (n & 2u) != 0u) * select(1u, 81u, n == 4u);
    let at = (group >> 3u) * 13u + word;
    let bytes = (vec4<u32>(w[p.w_plane0 + (at >> 2u)][at & 3u]) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
    return (((bytes * power) & vec4<u32>(255u)) * 3u) >> vec4<u32>(8u);
}

fn w_digit_bytes(group: u32, first: u32) -> vec4<u32> {
    var bytes: vec4<u32>;
    for (var i = 0u; i < 4u; i++) {
        let q = w_digits(group, first + i);
        bytes[i] = q.x | (q.y << 8u) | (q.z << 16u) | (q.w << 24u);
    }
    return bytes;
}

fn w_integers(group: u32) -> Integers {
    let d = vec2<f32>(w_scales(group).x);
    return Integers(w_digit_bytes(group, 0u), w_digit_bytes(group, 4u), d, -d);
}
