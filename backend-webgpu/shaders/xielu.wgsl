// A parabola above zero, an exponential below, and a line for both.
//!include lib/unary.wgsl

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
    let value = x[i];
    let above = p.positive * value * value;
    let below = p.negative * (unary_expm1(min(value, p.eps)) - value);
    out[i] = select(below, above, value > 0.0) + p.linear * value;
}
