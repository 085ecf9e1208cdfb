// Adds the products of four numbers of a row with those of four other rows to their sums, one after the other: a sum takes
// as many operations as it has products, and is the same in tiles of any size.
fn plus_dots(sums: vec4<f32>, a: vec4<f32>, b: array<vec4<f32>, 4>) -> vec4<f32> {
    var sum = sums;
    sum += a.x * vec4<f32>(b[0].x, b[1].x, b[2].x, b[3].x);
    sum += a.y * vec4<f32>(b[0].y, b[1].y, b[2].y, b[3].y);
    sum += a.z * vec4<f32>(b[0].z, b[1].z, b[2].z, b[3].z);
    sum += a.w * vec4<f32>(b[0].w, b[1].w, b[2].w, b[3].w);
    return sum;
}
