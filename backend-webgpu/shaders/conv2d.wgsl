// A convolution of images: a result for each invocation.
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
    let places = p.places0 * p.places1;
    let result = i / places % p.results;
    let plane = i / places / p.results * p.channels + result / p.of_group * p.own;
    // What lies before the image wraps to large numbers.
    let first_row = i / p.places1 % p.places0 * p.stride0 - p.before0;
    let first_col = i % p.places1 * p.stride1 - p.before1;
    let taps = p.kernel0 * p.kernel1;
    var sum = 0.0;
    for (var tap = 0u; tap < taps; tap++) {
        let row = first_row + tap / p.kernel1 * p.dilation0;
        let col = first_col + tap % p.kernel1 * p.dilation1;
        if (row < p.image0 && col < p.image1) {
            for (var channel = 0u; channel < p.own; channel++) {
                let factor = kernel[(result * p.own + channel) * taps + tap];
                sum += factor * x[((plane + channel) * p.image0 + row) * p.image1 + col];
            }
        }
    }
    out[i] = sum;
}
