// Some rows of the solutions of triangular systems, after those before them: an invocation walks down a column, of which
// it alone reads and writes what lies there.
@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let i = (wid.y * groups.x + wid.x) * WG + lane;
    if (i >= p.columns) {
        return;
    }
    let matrix = i / p.k;
    let column = matrix * p.n * p.k + i % p.k;
    for (var row = p.first; row < p.end; row++) {
        let factors = (matrix * p.n + row) * p.n;
        var sum = b[column + row * p.k];
        for (var j = 0u; j < row; j++) {
            sum -= a[factors + j] * out[column + j * p.k];
        }
        out[column + row * p.k] = sum / a[factors + row];
    }
}
