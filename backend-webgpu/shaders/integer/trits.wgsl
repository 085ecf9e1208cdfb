// Trits as integers: x = scale * q - scale.
fn digit_bytes(group: u32, first: u32) -> vec4<u32> {
    var bytes: vec4<u32>;
    for (var i = 0u; i < 4u; i++) {
        let q = digits(group, first + i);
        bytes[i] = q.x | (q.y << 8u) | (q.z << 16u) | (q.w << 24u);
    }
    return bytes;
}

fn integers(group: u32) -> Integers {
    let d = vec2<f32>(scales(group).x);
    return Integers(digit_bytes(group, 0u), digit_bytes(group, 4u), d, -d);
}
