// ELEMENT of the elements at one place: of one operand or, with PAIR, of two.
//!function ELEMENT

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
//!if PAIR
    out[i] = ELEMENT(x[i], y[i]);
//!else
    let alone = x[i];
    out[i] = ELEMENT(alone);
//!end
}
