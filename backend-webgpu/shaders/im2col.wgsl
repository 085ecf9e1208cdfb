// What a kernel sees at each of its places, as rows.
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
    let taps = p.kernel0 * p.kernel1;
    let k = i % (p.channels * taps);
    let place = i / (p.channels * taps);
    // What lies before the image wraps to large numbers.
    let row = place / p.places1 % p.places0 * p.stride0 + k / p.kernel1 % p.kernel0 * p.dilation0 - p.before0;
    let col = place % p.places1 * p.stride1 + k % p.kernel1 * p.dilation1 - p.before1;
    var seen = 0.0;
    if (row < p.image0 && col < p.image1) {
        let plane = place / (p.places0 * p.places1) * p.channels + k / taps;
        seen = x[(plane * p.image0 + row) * p.image1 + col];
    }
    out[i] = seen;
}
