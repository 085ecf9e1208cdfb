// resize antialias
struct Step {
    position: u32,
    rows: u32,
    top_k: u32,
    top_p: f32,
    temperature: f32,
    seed_lo: u32,
    seed_hi: u32,
    sequence: u32,
    origin: vec3<u32>,
}
struct Params {
    len: u32,
    dim0: u32,
    dim1: u32,
    dim2: u32,
    dim3: u32,
    x0: u32,
    x1: u32,
    x2: u32,
    x3: u32,
    step0: u32,
    step1: u32,
    step2: u32,
    step3: u32,
    first0: u32,
    first1: u32,
    first2: u32,
    first3: u32,
    unit0: u32,
    unit1: u32,
    unit2: u32,
    unit3: u32,
    reach0: u32,
    reach1: u32,
    reach2: u32,
    reach3: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;


fn place(i: u32, step: u32, first: u32) -> u32 {
    return i * step + first;
}

fn element(row: u32, col: u32) -> f32 {
    return x[row * p.x3 + col];
}


@compute @workgroup_size(64u)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let i = (wid.y * groups.x + wid.x) * 64u + lane;
    if (i >= p.len) {
        return;
    }
    let inner = place(i / (p.dim3 * p.dim2) % p.dim1, p.step1, p.first1) / p.unit1 - 1u;
    let outer = place(i / (p.dim3 * p.dim2 * p.dim1), p.step0, p.first0) / p.unit0 - 1u;
    let plane = (outer * p.x1 + inner) * p.x2;
    let down = place(i / p.dim3 % p.dim2, p.step2, p.first2);
    let across = place(i % p.dim3, p.step3, p.first3);
    var sum = 0.0;
    var all = 0.0;
    let last_row = min((down + p.reach2 - 1u) / p.unit2, p.x2);
    let last_col = min((across + p.reach3 - 1u) / p.unit3, p.x3);
    for (var row = (max(down, p.reach2) - p.reach2) / p.unit2; row < last_row; row++) {
        let by_row = 1.0 - abs(f32(i32((row + 1u) * p.unit2) - i32(down))) / f32(p.reach2);
        for (var col = (max(across, p.reach3) - p.reach3) / p.unit3; col < last_col; col++) {
            let by = by_row * (1.0 - abs(f32(i32((col + 1u) * p.unit3) - i32(across))) / f32(p.reach3));
            sum += by * element(plane + row, col);
            all += by;
        }
    }
    out[i] = sum / all;
}
