// Alternates runs of a and b.
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
    let run = p.a_run + p.b_run;
    let outer = i / run;
    let at = i % run;
    if (at < p.a_run) {
        out[i] = a[outer * p.a_run + at];
    } else {
        out[i] = b[outer * p.b_run + at - p.a_run];
    }
}
