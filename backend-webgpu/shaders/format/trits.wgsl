// The numbers of a group of trits. In a loop: unrolled, the digits of kernels that decode several groups at a time take a
// software device longer to compile than browsers wait.
fn decode32(group: u32) -> array<vec4<f32>, 8> {
    let d = scales(group).x;
    var out: array<vec4<f32>, 8>;
    for (var i = 0u; i < 8u; i++) {
        out[i] = d * (vec4<f32>(digits(group, i)) - 1.0);
    }
    return out;
}
