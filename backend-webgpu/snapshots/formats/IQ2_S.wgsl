
fn w_fields(group: u32) -> vec4<u32> {
    let block = p.w_plane0 + 4 * (group >> 3u);
    let own = group & 7u;
    let indices = vec2<u32>(w[block + (own >> 2u)][own & 3u], 0u);
    var f = vec4<u32>(indices, indices.y, 0u);
    f.z = w[block + 2 + (own >> 2u)][own & 3u];
    f.w = w_bytes_from(p.w_plane1, 1 * group);
    return f;
}

fn w_bytes_from(plane: u32, at: u32) -> u32 {
    return w[plane + (at >> 4u)][(at >> 2u) & 3u] >> (8u * (at & 3u));
}

fn w_scales(group: u32, f: vec4<u32>) -> vec2<f32> {
    let d = half_of(w[p.w_plane3 + (group >> 6u)], (group >> 3u) & 7u);
    let s = (vec2<u32>(w_bytes_from(p.w_plane2, group)) >> vec2<u32>(0u, 4u)) & vec2<u32>(15u);
    return d * 0.25 * (0.5 + vec2<f32>(s));
}

fn w_index_of(f: vec4<u32>, i: u32) -> u32 {
    var index = (f[i >> 2u] >> (8u * (i & 3u))) & 255u;
    index |= ((f.w >> (2 * i)) & 3u) << 8u;
    return index;
}

fn w_entry(index: u32) -> u32 {
    return codebook_iq2_s[index >> 3u][(index >> 1u) & 3u] >> (16u * (index & 1u));
}

fn w_signs(f: vec4<u32>, i: u32) -> u32 {
    return f.z >> (8u * i);
}

fn w_four(codes: u32, bits: u32) -> vec4<f32> {
    let negative = (vec4<u32>(bits) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>(0u);
    let code = vec4<u32>(codes) >> vec4<u32>(0u, 2u, 4u, 6u);
    let table = select(vec4<u32>(0x08192b00u), vec4<u32>(0xf8e7d500u), negative);
    let level = vec4<f32>(bitcast<vec4<i32>>(table << (8u * (code & vec4<u32>(3u)))) >> vec4<u32>(24u));
    return level;
}

fn w_eight(f: vec4<u32>, i: u32) -> array<vec4<f32>, 2> {
    let bits = w_signs(f, i);
    let first = w_entry(w_index_of(f, i));
    let last = first >> 8u;
    return array<vec4<f32>, 2>(w_four(first, bits), w_four(last, bits >> 4u));
}

fn w_decode32(group: u32) -> array<vec4<f32>, 8> {
    let f = w_fields(group);
    let s = w_scales(group, f);
    let a = w_eight(f, 0u);
    let b = w_eight(f, 1u);
    let c = w_eight(f, 2u);
    let e = w_eight(f, 3u);
    return array<vec4<f32>, 8>(
        s.x * a[0], s.x * a[1], s.x * b[0], s.x * b[1],
        s.y * c[0], s.y * c[1], s.y * e[0], s.y * e[1]);
}

fn w_decode_row(row: u32, group: u32) -> array<vec4<f32>, 8> {
    return w_decode32(row * p.w_groups + group);
}

fn w_fields(group: u32) -> vec4<u32> {
    let block = p.w_plane0 + 4 * (group >> 3u);
    let own = group & 7u;
    let indices = vec2<u32>(w[block + (own >> 2u)][own & 3u], 0u);
    var f = vec4<u32>(indices, indices.y, 0u);
    f.z = w[block + 2 + (own >> 2u)][own & 3u];
    f.w = w_bytes_from(p.w_plane1, 1 * group);
    return f;
}

fn w_bytes_from(plane: u32, at: u32) -> u32 {
    return w[plane + (at >> 4u)][(at >> 2u) & 3u] >> (8u * (at & 3u));
}

fn w_scales(group: u32, f: vec4<u32>) -> vec2<f32> {
    let d = half_of(w[p.w_plane3 + (group >> 6u)], (group >> 3u) & 7u);
    let s = (vec2<u32>(w_bytes_from(p.w_plane2, group)) >> vec2<u32>(0u, 4u)) & vec2<u32>(15u);
    return d * 0.25 * (0.5 + vec2<f32>(s));
}

fn w_index_of(f: vec4<u32>, i: u32) -> u32 {
    var index = (f[i >> 2u] >> (8u * (i & 3u))) & 255u;
    index |= ((f.w >> (2 * i)) & 3u) << 8u;
    return index;
}

fn w_entry(index: u32) -> u32 {
    return codebook_iq2_s[index >> 3u][(index >> 1u) & 3u] >> (16u * (index & 1u));
}

fn w_signs(f: vec4<u32>, i: u32) -> u32 {
    return f.z >> (8u * i);
}

fn w_four(codes: u32, bits: u32) -> vec4<f32> {
    let negative = (vec4<u32>(bits) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>(0u);
    let code = vec4<u32>(codes) >> vec4<u32>(0u, 2u, 4u, 6u);
    let table = select(vec4<u32>(0x08192b00u), vec4<u32>(0xf8e7d500u), negative);
    let level = vec4<f32>(bitcast<vec4<i32>>(table << (8u * (code & vec4<u32>(3u)))) >> vec4<u32>(24u));
    return level;
}

fn w_eight(f: vec4<u32>, i: u32) -> array<vec4<f32>, 2> {
    let bits = w_signs(f, i);
    let first = w_entry(w_index_of(f, i));
    let last = first >> 8u;
    return array<vec4<f32>, 2>(w_four(first, bits), w_four(last, bits >> 4u));
}

fn w_packed(f: vec4<u32>, i: u32) -> vec2<u32> {
    let run = w_eight(f, i);
    return vec2<u32>(pack4xI8(vec4<i32>(run[0])), pack4xI8(vec4<i32>(run[1])));
}

fn w_integers(group: u32) -> Integers {
    let f = w_fields(group);
    let low = vec4<u32>(w_packed(f, 0u), w_packed(f, 1u));
    let high = vec4<u32>(w_packed(f, 2u), w_packed(f, 3u));
    return Integers(low, high, w_scales(group, f), vec2<f32>(0.0));
}
