// argsort
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
    cols: u32,
    list: u32,
    flip: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> ordered: array<i32>;

fn sort_key(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let size = bits & 0x7fffffffu;
    let below = size != 0u && bits != size;
    let key = select(size | 0x80000000u, ~bits, below);
    return select(key, 0xffffffffu, size > 0x7f800000u) ^ p.flip;
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
    let row = i - i % p.cols;
    let col = i - row;
    let first = col - col % p.list;
    let end = min(first + p.list, p.cols);
    let own = sort_key(x[i]);
    var place = first;
    for (var c = first; c < end; c++) {
        let other = sort_key(x[row + c]);
        place += u32(other < own || (other == own && c < col));
    }
    ordered[row + place] = i32(col);
}
