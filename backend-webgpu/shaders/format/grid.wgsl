// The numbers of a group of a grid.
fn decode32(group: u32) -> array<vec4<f32>, 8> {
    let f = fields(group);
    let s = scales(group, f);
    let a = eight(f, 0u);
    let b = eight(f, 1u);
    let c = eight(f, 2u);
    let e = eight(f, 3u);
    return array<vec4<f32>, 8>(
        s.x * a[0], s.x * a[1], s.x * b[0], s.x * b[1],
        s.y * c[0], s.y * c[1], s.y * e[0], s.y * e[1]);
}
