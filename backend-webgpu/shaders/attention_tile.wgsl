// Attention of many queries with online softmax, a workgroup for 64 queries of a head. 64 keys at a time are multiplied with the
// queries, 32 channels at a time; each of the 128 invocations keeps the scores of 8 queries and 4 keys. Those become
// weights, which the workgroup's memory passes on to the sums of values, 32 keys and 64 channels at a time.
//!include lib/dots.wgsl
//!include lib/keys.wgsl
//!include lib/slopes.wgsl

const LOWEST: f32 = -3.4028234e38;
// Vectors of four of a query, in parts of 8.
const Q4: u32 = D / 4u;
// In the first half queries or weights, in the second keys or values; between them what the invocations of a row found.
var<workgroup> tile: array<vec4<f32>, 1024>;

// Where vector i of eight of a row lies: those of neighbouring rows are in different banks.
fn at(row: u32, i: u32) -> u32 {
    return row * 8u + (i ^ (row & 7u));
}

// Brings channels 32 c and on of the queries from row m0 on and of 64 keys from `first` on. Key 4 x + r of them lies in row
// x + 16 r, so that an invocation's keys are neighbours and their rows lie in different banks.
fn bring(lane: u32, c: u32, head: u32, kv_head: u32, m0: u32, first: u32, last: u32) {
    let i = lane & 7u;
    let quad = 8u * c + i;
    let inside = quad < Q4;
    for (var t = 0u; t < 4u; t++) {
        let row = lane / 8u + 16u * t;
        let query = min(m0 + row, p.m - 1u);
        let key = min(first + row, last);
        var x = vec4<f32>(0.0);
        var y = vec4<f32>(0.0);
        if (inside) {
            x = q[(query * p.n_head + head) * Q4 + quad];
            y = key_at((key * p.n_head_kv + kv_head) * Q4 + quad);
        }
        tile[at(row, i)] = x;
        tile[512u + at(row / 4u + 16u * (row & 3u), i)] = y;
    }
}

// The scores of query row and four neighbouring keys; hidden ones are the lowest.
fn masked_scores(products: vec4<f32>, head: u32, row: u32, key: u32) -> vec4<f32> {
    let range = visible(row);
    let keys = vec4<u32>(key) + vec4<u32>(0u, 1u, 2u, 3u);
    let seen = (keys >= vec4<u32>(range.x)) & (keys < vec4<u32>(range.y));
    var scores = vec4<f32>(
        capped(p.scale * products.x), capped(p.scale * products.y),
        capped(p.scale * products.z), capped(p.scale * products.w));
//!if SLOPES
    scores -= slope_of(head) * abs(f32(place_of(row)) - vec4<f32>(keys));
//!end
    return select(vec4<f32>(LOWEST), scores, seen);
}

fn largest(x: vec4<f32>) -> f32 {
    return max(max(x.x, x.y), max(x.z, x.w));
}

// Hidden keys weigh nothing.
fn weights_of(scores: vec4<f32>, highest: f32) -> vec4<f32> {
    return select(exp(scores - highest), vec4<f32>(0.0), scores == vec4<f32>(LOWEST));
}

// Brings 64 channels of 32 values from `first` on; those beyond the end weigh nothing.
fn bring_values(lane: u32, part: u32, kv_head: u32, first: u32, last: u32) {
    let quad = 16u * part + lane % 16u;
    for (var t = 0u; t < 4u; t++) {
        let i = lane / 16u + 8u * t;
        let key = min(first + i, last);
        tile[512u + i * 16u + lane % 16u] = value_at((key * p.n_head_kv + kv_head) * VALUES + min(quad, VALUES - 1u));
    }
}

// Adds four values with their weights to a sum.
fn plus_weighted(sum: vec4<f32>, weights: vec4<f32>, values: array<vec4<f32>, 4>) -> vec4<f32> {
    return sum + weights.x * values[0] + weights.y * values[1] + weights.z * values[2] + weights.w * values[3];
}

@compute @workgroup_size(128)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let job = wid.y * groups.x + wid.x;
    if (job >= p.tiles * p.n_head) {
        return;
    }
    // Later queries see more keys, so they begin first.
    let m0 = (p.tiles - 1u - job / p.n_head) * 64u;
    let head = job % p.n_head;
    let kv_head = head * p.n_head_kv / p.n_head;
    let tx = lane % 16u;
    let ty = lane / 16u;
    let of_first = visible(m0);
    let of_last = visible(min(m0 + 63u, p.m - 1u));
    let start = of_first.x;
    let end = of_last.y;
    let latest_start = of_last.x;
    let earliest_end = of_first.y;
    // Of each row the highest score so far and this invocation's part of the weights' sum.
    var highest: array<f32, 8>;
    var total: array<f32, 8>;
//!each ROW 8
//!if SINKS
    highest[ROW] = sinks[head];
    total[ROW] = select(0.0, 1.0, tx == 0u);
//!else
    highest[ROW] = LOWEST;
//!end
//!end
    var sums: array<vec4<f32>, 8u * ROWS>;
    for (var first = start; first < end; first += 64u) {
        var scores = array<vec4<f32>, 8>();
        for (var c = 0u; c < CHANNELS; c++) {
            bring(lane, c, head, kv_head, m0, first, end - 1u);
            workgroupBarrier();
            for (var i = 0u; i < 8u; i++) {
                let x = at(ty, i);
                let y = 512u + at(tx, i);
                let keys = array<vec4<f32>, 4>(tile[y], tile[y + 128u], tile[y + 256u], tile[y + 384u]);
//!each ROW 8
                scores[ROW] = plus_dots(scores[ROW], tile[x + 64u * ROW], keys);
//!end
            }
            workgroupBarrier();
        }
//!if SLOPES
        {
//!else
        // All queries see all of most tiles.
        if (p.softcap == 0.0 && first >= latest_start && first + 64u <= earliest_end) {
//!each ROW 8
            scores[ROW] *= p.scale;
//!end
        } else {
//!end
//!each ROW 8
            scores[ROW] = masked_scores(scores[ROW], head, m0 + ty + 8u * ROW, first + 4u * tx);
//!end
        }
        // What this invocation found of its rows; the sixteen of a row lie beside each other.
        tile[512u + 2u * lane] = vec4<f32>(largest(scores[0]), largest(scores[1]), largest(scores[2]), largest(scores[3]));
        tile[513u + 2u * lane] = vec4<f32>(largest(scores[4]), largest(scores[5]), largest(scores[6]), largest(scores[7]));
        workgroupBarrier();
        var found = array<vec4<f32>, 2>(tile[512u + 32u * ty], tile[513u + 32u * ty]);
        for (var i = 1u; i < 16u; i++) {
            found[0] = max(found[0], tile[512u + 32u * ty + 2u * i]);
            found[1] = max(found[1], tile[513u + 32u * ty + 2u * i]);
        }
//!each ROW 8
        {
            let now = max(highest[ROW], found[ROW / 4u][ROW % 4u]);
            let shrink = exp(highest[ROW] - now);
            highest[ROW] = now;
            scores[ROW] = weights_of(scores[ROW], now);
            total[ROW] = total[ROW] * shrink + dot(scores[ROW], vec4<f32>(1.0));
//!each PART
            sums[8u * PART + ROW] *= shrink;
//!end
        }
//!end
        for (var half = 0u; half < 2u; half++) {
            if (tx / 8u == half) {
                let x = at(ty, tx % 8u);
//!each ROW 8
                tile[x + 64u * ROW] = scores[ROW];
//!end
            }
//!each PART
            workgroupBarrier();
            bring_values(lane, PART, kv_head, first + 32u * half, end - 1u);
            workgroupBarrier();
            for (var i = 0u; i < 8u; i++) {
                let x = at(ty, i);
                let y = 512u + 64u * i + tx;
                let values = array<vec4<f32>, 4>(tile[y], tile[y + 16u], tile[y + 32u], tile[y + 48u]);
//!each ROW 8
                sums[8u * PART + ROW] = plus_weighted(sums[8u * PART + ROW], tile[x + 64u * ROW], values);
//!end
            }
//!end
            workgroupBarrier();
        }
    }
    tile[2u * lane] = vec4<f32>(total[0], total[1], total[2], total[3]);
    tile[2u * lane + 1u] = vec4<f32>(total[4], total[5], total[6], total[7]);
    workgroupBarrier();
    var all = array<vec4<f32>, 2>(tile[32u * ty], tile[32u * ty + 1u]);
    for (var i = 1u; i < 16u; i++) {
        all[0] += tile[32u * ty + 2u * i];
        all[1] += tile[32u * ty + 1u + 2u * i];
    }
//!each ROW 8
    {
        let row = m0 + ty + 8u * ROW;
        let sum = all[ROW / 4u][ROW % 4u];
        let scale = select(1.0 / sum, 0.0, sum == 0.0);
        if (row < p.m) {
//!each PART
            if (16u * PART + tx < VALUES) {
                out[(row * p.n_head + head) * VALUES + 16u * PART + tx] = sums[8u * PART + ROW] * scale;
            }
//!end
        }
    }
//!end
}
