// Which choices the tiles of experts multiply: an expert, the first of its choices and how many, for each tile of up to 32;
// then the choices, expert by expert. One workgroup; an invocation looks at all choices for each of its experts.

const TILE: u32 = 32u;
var<workgroup> counts: array<u32, EXPERTS>;

fn expert(c: u32) -> u32 {
    return min(u32(max(ids[c], 0)), EXPERTS - 1u);
}

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) lane: u32) {
    for (var e = lane; e < EXPERTS; e += WG) {
        var count = 0u;
        for (var c = 0u; c < p.choices; c++) {
            count += select(0u, 1u, expert(c) == e);
        }
        counts[e] = count;
    }
    workgroupBarrier();
    for (var e = lane; e < EXPERTS; e += WG) {
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
        if (e == EXPERTS - 1u) {
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
