// experts_plan
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
    choices: u32,
    tiles: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> ids: array<i32>;
@group(0) @binding(3) var<storage, read_write> plan: array<u32>;


const TILE: u32 = 32u;
var<workgroup> counts: array<u32, 8u>;

fn expert(c: u32) -> u32 {
    return min(u32(max(ids[c], 0)), 8u - 1u);
}

@compute @workgroup_size(256u)
fn main(@builtin(local_invocation_index) lane: u32) {
    for (var e = lane; e < 8u; e += 256u) {
        var count = 0u;
        for (var c = 0u; c < p.choices; c++) {
            count += select(0u, 1u, expert(c) == e);
        }
        counts[e] = count;
    }
    workgroupBarrier();
    for (var e = lane; e < 8u; e += 256u) {
        var first = 0u;
        var tile = 0u;
        for (var before = 0u; before < e; before++) {
            first += counts[before];
            tile += (counts[before] + TILE - 1u) / TILE;
        }
        for (var done = 0u; done < counts[e]; done += TILE) {
            plan[3u * tile] = e;
            plan[3u * tile + 1u] = first + done;
            plan[3u * tile + 2u] = min(counts[e] - done, TILE);
            tile++;
        }
        if (e == 8u - 1u) {
            for (; tile < p.tiles; tile++) {
                plan[3u * tile + 2u] = 0u;
            }
        }
        for (var c = 0u; c < p.choices; c++) {
            if (expert(c) == e) {
                plan[3u * p.tiles + first] = c;
                first++;
            }
        }
    }
}
