// Elements 4 i .. 4 i + 3 of a row, zeros beyond its end.
fn x4(row: u32, i: u32) -> vec4<f32> {
//!if WHOLE
    return x[row * (p.k / 4u) + i];
//!else
//!if VEC4
    return select(vec4<f32>(0.0), x[row * (p.k / 4u) + min(i, p.k / 4u - 1u)], 4u * i < p.k);
//!else
    var out = vec4<f32>(0.0);
    for (var e = 0u; e < 4u; e++) {
        if (4u * i + e < p.k) {
            out[e] = x[row * p.k + 4u * i + e];
        }
    }
    return out;
//!end
//!end
}
