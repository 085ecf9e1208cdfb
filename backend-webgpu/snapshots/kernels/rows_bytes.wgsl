// rows_bytes vec4 whole
struct Step {
    position: u32,
    rows: u32,
    top_k: u32,
    top_p: f32,
    temperature: f32,
    seed_lo: u32,
    seed_hi: u32,
    sequence: u32,
    origin: vec3<u32>,
}
struct Params {
    len: u32,
    k: u32,
    x_groups: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> bytes: array<vec4<u32>>;

alias Group = array<vec4<f32>, 8>;

fn dot32(a: Group, b: Group) -> f32 {
    return dot(a[0], b[0]) + dot(a[1], b[1]) + dot(a[2], b[2]) + dot(a[3], b[3])
        + dot(a[4], b[4]) + dot(a[5], b[5]) + dot(a[6], b[6]) + dot(a[7], b[7]);
}
fn x4(row: u32, i: u32) -> vec4<f32> {
    return x[row * (p.k / 4u) + i];
}

fn x32(row: u32, g: u32) -> Group {
    let i = g * 8u;
    return Group(
        x4(row, i), x4(row, i + 1u), x4(row, i + 2u), x4(row, i + 3u),
        x4(row, i + 4u), x4(row, i + 5u), x4(row, i + 6u), x4(row, i + 7u));
}
fn dot16(a: vec4<u32>, b: vec4<u32>) -> i32 {
    return dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
}

fn steps(x: vec4<f32>, inverse: f32) -> u32 {
    return pack4xI8(vec4<i32>(round(x * inverse)));
}

fn largest(a: vec4<f32>, b: vec4<f32>) -> f32 {
    let four = max(abs(a), abs(b));
    return max(max(four.x, four.y), max(four.z, four.w));
}

@compute @workgroup_size(64u)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let i = (wid.y * groups.x + wid.x) * 64u + lane;
    if (i >= p.len) {
        return;
    }
    let x = x32(i / p.x_groups, i % p.x_groups);
    let top = max(max(largest(x[0], x[1]), largest(x[2], x[3])), max(largest(x[4], x[5]), largest(x[6], x[7])));
    let inverse = select(127.0 / top, 0.0, top < 1e-30);
    let scale = top / 127.0;
    let low = vec4<u32>(steps(x[0], inverse), steps(x[1], inverse), steps(x[2], inverse), steps(x[3], inverse));
    let high = vec4<u32>(steps(x[4], inverse), steps(x[5], inverse), steps(x[6], inverse), steps(x[7], inverse));
    let ones = vec4<u32>(0x01010101u);
    let sums = scale * vec2<f32>(f32(dot16(low, ones)), f32(dot16(high, ones)));
    bytes[3u * i] = low;
    bytes[3u * i + 1u] = high;
    bytes[3u * i + 2u] = bitcast<vec4<u32>>(vec4<f32>(scale, sums, 0.0));
}
