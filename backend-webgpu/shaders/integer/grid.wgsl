// Grids as integers.
fn packed(f: vec4<u32>, i: u32) -> vec2<u32> {
    let run = eight(f, i);
    return vec2<u32>(pack4xI8(vec4<i32>(run[0])), pack4xI8(vec4<i32>(run[1])));
}

fn integers(group: u32) -> Integers {
    let f = fields(group);
    let low = vec4<u32>(packed(f, 0u), packed(f, 1u));
    let high = vec4<u32>(packed(f, 2u), packed(f, 3u));
    return Integers(low, high, scales(group, f), vec2<f32>(0.0));
}
