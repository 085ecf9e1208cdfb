// The sums of a row up to each element, a workgroup a row: each invocation has neighbouring columns, and begins with what
// those before it have together.
var<workgroup> sums: array<f32, WG>;

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let row = wid.y * groups.x + wid.x;
    if (row >= p.rows) {
        return;
    }
    let each = (p.cols + WG - 1u) / WG;
    let first = row * p.cols + min(lane * each, p.cols);
    let end = row * p.cols + min((lane + 1u) * each, p.cols);
    var own = 0.0;
    for (var i = first; i < end; i++) {
        own += x[i];
    }
    sums[lane] = own;
    workgroupBarrier();
    for (var apart = 1u; apart < WG; apart <<= 1u) {
        var before = 0.0;
        if (lane >= apart) {
            before = sums[lane - apart];
        }
        workgroupBarrier();
        sums[lane] += before;
        workgroupBarrier();
    }
    var running = 0.0;
    if (lane > 0u) {
        running = sums[lane - 1u];
    }
    for (var i = first; i < end; i++) {
        running += x[i];
        out[i] = running;
    }
}
