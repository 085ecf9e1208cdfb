// What RESULT says of the operands' elements that belong to element i, after LINES.

// A coordinate that is shifted, and goes round.
fn around(d: u32, shift: u32, dim: u32) -> u32 {
    return (d + shift) % dim;
}

// Whether a coordinate is among `len` from `first` on. What lies before wraps to large numbers.
fn within(d: u32, first: u32, len: u32) -> bool {
    return d - first < len;
}

fn element(i: u32) -> f32 {
    let d3 = i % p.dim3;
    let d2 = i / p.dim3 % p.dim2;
    let d1 = i / (p.dim3 * p.dim2) % p.dim1;
    let d0 = i / (p.dim3 * p.dim2 * p.dim1);
LINES
    return RESULT;
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
    out[i] = element(i);
}
