// Rows of x as bytes, once for all tiles that multiply them with quantised weights: a group of 32 numbers in 255 steps of the
// largest of them, then the step and the sums of both halves.
//!include lib/rows32.wgsl
//!include lib/dot16.wgsl

fn steps(x: vec4<f32>, inverse: f32) -> u32 {
    return pack4xI8(vec4<i32>(round(x * inverse)));
}

fn largest(a: vec4<f32>, b: vec4<f32>) -> f32 {
    let four = max(abs(a), abs(b));
    return max(max(four.x, four.y), max(four.z, four.w));
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let i = (wid.y * groups.x + wid.x) * WG + lane;
    if (i >= p.len) {
        return;
    }
    let x = x32(i / p.x_groups, i % p.x_groups);
    let top = max(max(largest(x[0], x[1]), largest(x[2], x[3])), max(largest(x[4], x[5]), largest(x[6], x[7])));
    // What is too small to be divided by is too small to matter.
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
