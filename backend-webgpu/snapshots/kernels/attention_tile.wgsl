// attention_tile q4_0 vec4 values4 key_blocks value_blocks
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
    tiles: u32,
    n_head: u32,
    n_head_kv: u32,
    m: u32,
    n: u32,
    causal: u32,
    window: u32,
    cached: u32,
    scale: f32,
    softcap: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> k: array<u32>;
@group(0) @binding(4) var<storage, read> v: array<u32>;
@group(0) @binding(5) var<storage, read_write> out: array<vec4<f32>>;

fn plus_dots(sums: vec4<f32>, a: vec4<f32>, b: array<vec4<f32>, 4>) -> vec4<f32> {
    var sum = sums;
    sum += a.x * vec4<f32>(b[0].x, b[1].x, b[2].x, b[3].x);
    sum += a.y * vec4<f32>(b[0].y, b[1].y, b[2].y, b[3].y);
    sum += a.z * vec4<f32>(b[0].z, b[1].z, b[2].z, b[3].z);
    sum += a.w * vec4<f32>(b[0].w, b[1].w, b[2].w, b[3].w);
    return sum;
}
fn k_quad(row: u32, i: u32) -> vec4<f32> {
    let block = i / 8u;
    let scale = bitcast<f32>(k[row * 8u + 4u + block]);
    let first = row * 8u + 4 * block;
    let word = k[first + (i / 2u) % 4u] >> (16u * (i % 2u));
    var levels = (vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    return scale * (vec4<f32>(levels) - f32(8));
}

fn key_at(i: u32) -> vec4<f32> {
    return k_quad(i / 8u, i % 8u);
}

fn v_quad(row: u32, i: u32) -> vec4<f32> {
    let block = i / 8u;
    let scale = bitcast<f32>(v[row * 8u + 4u + block]);
    let first = row * 8u + 4 * block;
    let word = v[first + (i / 2u) % 4u] >> (16u * (i % 2u));
    var levels = (vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    return scale * (vec4<f32>(levels) - f32(8));
}

fn value_at(i: u32) -> vec4<f32> {
    return v_quad(i / 8u, i % 8u);
}
fn position_of(row: u32) -> u32 {
    return step.position + row;
}

fn before_sequence(row: u32, capacity: u32) -> u32 {
    return 0u;
}
fn safe_tanh(x: f32) -> f32 {
    let nan = (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
    return select(tanh(clamp(x, -15.0, 15.0)), x, nan);
}

const HIDDEN: f32 = -3.0e38;

fn capped(score: f32) -> f32 {
    if (p.softcap > 0.0) {
        return p.softcap * safe_tanh(score / p.softcap);
    }
    return score;
}

fn visible(i: u32) -> vec2<u32> {
    var filled = p.n;
    var at = max(p.n + i, p.m) - p.m;
    if (p.cached != 0u) {
        at = position_of(i);
        filled = min(step.position + step.rows, p.n);
    }
    var start = 0u;
    var end = filled;
    if (p.causal != 0u) {
        end = min(filled, at + 1u);
        if (p.window != 0u) {
            start = max(at + 1u, p.window) - p.window;
        }
    } else if (p.window != 0u) {
        end = min(filled, at + p.window / 2u + 1u);
        start = max(at, p.window / 2u) - p.window / 2u;
    }
    return vec2<u32>(min(start, end), end);
}

const LOWEST: f32 = -3.4028234e38;
const Q4: u32 = 32u / 4u;
var<workgroup> tile: array<vec4<f32>, 1024>;

fn at(row: u32, i: u32) -> u32 {
    return row * 8u + (i ^ (row & 7u));
}

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

fn masked_scores(products: vec4<f32>, range: vec2<u32>, key: u32) -> vec4<f32> {
    let keys = vec4<u32>(key) + vec4<u32>(0u, 1u, 2u, 3u);
    let seen = (keys >= vec4<u32>(range.x)) & (keys < vec4<u32>(range.y));
    let scores = vec4<f32>(
        capped(p.scale * products.x), capped(p.scale * products.y),
        capped(p.scale * products.z), capped(p.scale * products.w));
    return select(vec4<f32>(LOWEST), scores, seen);
}

fn largest(x: vec4<f32>) -> f32 {
    return max(max(x.x, x.y), max(x.z, x.w));
}

fn weights_of(scores: vec4<f32>, highest: f32) -> vec4<f32> {
    return select(exp(scores - highest), vec4<f32>(0.0), scores == vec4<f32>(LOWEST));
}

fn bring_values(lane: u32, part: u32, kv_head: u32, first: u32, last: u32) {
    let quad = 16u * part + lane % 16u;
    for (var t = 0u; t < 4u; t++) {
        let i = lane / 16u + 8u * t;
        let key = min(first + i, last);
        tile[512u + i * 16u + lane % 16u] = value_at((key * p.n_head_kv + kv_head) * 8u + min(quad, 8u - 1u));
    }
}

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
    var highest: array<f32, 8>;
    var total: array<f32, 8>;
    highest[0u] = LOWEST;
    highest[1u] = LOWEST;
    highest[2u] = LOWEST;
    highest[3u] = LOWEST;
    highest[4u] = LOWEST;
    highest[5u] = LOWEST;
    highest[6u] = LOWEST;
    highest[7u] = LOWEST;
    var sums: array<vec4<f32>, 8u * 1u>;
    for (var first = start; first < end; first += 64u) {
        var scores = array<vec4<f32>, 8>();
        for (var c = 0u; c < 1u; c++) {
            bring(lane, c, head, kv_head, m0, first, end - 1u);
            workgroupBarrier();
            for (var i = 0u; i < 8u; i++) {
                let x = at(ty, i);
                let y = 512u + at(tx, i);
                let keys = array<vec4<f32>, 4>(tile[y], tile[y + 128u], tile[y + 256u], tile[y + 384u]);
                scores[0u] = plus_dots(scores[0u], tile[x + 64u * 0u], keys);
                scores[1u] = plus_dots(scores[1u], tile[x + 64u * 1u], keys);
                scores[2u] = plus_dots(scores[2u], tile[x + 64u * 2u], keys);
                scores[3u] = plus_dots(scores[3u], tile[x + 64u * 3u], keys);
                scores[4u] = plus_dots(scores[4u], tile[x + 64u * 4u], keys);
                scores[5u] = plus_dots(scores[5u], tile[x + 64u * 5u], keys);
                scores[6u] = plus_dots(scores[6u], tile[x + 64u * 6u], keys);
                scores[7u] = plus_dots(scores[7u], tile[x + 64u * 7u], keys);
            }
            workgroupBarrier();
        }
        if (p.softcap == 0.0 && first >= latest_start && first + 64u <= earliest_end) {
            scores[0u] *= p.scale;
            scores[1u] *= p.scale;
            scores[2u] *= p.scale;
            scores[3u] *= p.scale;
            scores[4u] *= p.scale;
            scores[5u] *= p.scale;
            scores[6u] *= p.scale;
            scores[7u] *= p.scale;
        } else {
            scores[0u] = masked_scores(scores[0u], visible(m0 + ty + 8u * 0u), first + 4u * tx);
            scores[1u] = masked_scores(scores[1u], visible(m0 + ty + 8u * 1u), first + 4u * tx);
            scores[2u] = masked_scores(scores[2u], visible(m0 + ty + 8u * 2u), first + 4u * tx);
            scores[3u] = masked_scores(scores[3u], visible(m0 + ty + 8u * 3u), first + 4u * tx);
            scores[4u] = masked_scores(scores[4u], visible(m0 + ty + 8u * 4u), first + 4u * tx);
            scores[5u] = masked_scores(scores[5u], visible(m0 + ty + 8u * 5u), first + 4u * tx);
            scores[6u] = masked_scores(scores[6u], visible(m0 + ty + 8u * 6u), first + 4u * tx);
            scores[7u] = masked_scores(scores[7u], visible(m0 + ty + 8u * 7u), first + 4u * tx);
        }
        tile[512u + 2u * lane] = vec4<f32>(largest(scores[0]), largest(scores[1]), largest(scores[2]), largest(scores[3]));
        tile[513u + 2u * lane] = vec4<f32>(largest(scores[4]), largest(scores[5]), largest(scores[6]), largest(scores[7]));
        workgroupBarrier();
        var found = array<vec4<f32>, 2>(tile[512u + 32u * ty], tile[513u + 32u * ty]);
        for (var i = 1u; i < 16u; i++) {
            found[0] = max(found[0], tile[512u + 32u * ty + 2u * i]);
            found[1] = max(found[1], tile[513u + 32u * ty + 2u * i]);
        }
        {
            let now = max(highest[0u], found[0u / 4u][0u % 4u]);
            let shrink = exp(highest[0u] - now);
            highest[0u] = now;
            scores[0u] = weights_of(scores[0u], now);
            total[0u] = total[0u] * shrink + dot(scores[0u], vec4<f32>(1.0));
            sums[8u * 0u + 0u] *= shrink;
        }
        {
            let now = max(highest[1u], found[1u / 4u][1u % 4u]);
            let shrink = exp(highest[1u] - now);
            highest[1u] = now;
            scores[1u] = weights_of(scores[1u], now);
            total[1u] = total[1u] * shrink + dot(scores[1u], vec4<f32>(1.0));
            sums[8u * 0u + 1u] *= shrink;
        }
        {
            let now = max(highest[2u], found[2u / 4u][2u % 4u]);
            let shrink = exp(highest[2u] - now);
            highest[2u] = now;
            scores[2u] = weights_of(scores[2u], now);
            total[2u] = total[2u] * shrink + dot(scores[2u], vec4<f32>(1.0));
            sums[8u * 0u + 2u] *= shrink;
        }
        {
            let now = max(highest[3u], found[3u / 4u][3u % 4u]);
            let shrink = exp(highest[3u] - now);
            highest[3u] = now;
            scores[3u] = weights_of(scores[3u], now);
            total[3u] = total[3u] * shrink + dot(scores[3u], vec4<f32>(1.0));
            sums[8u * 0u + 3u] *= shrink;
        }
        {
            let now = max(highest[4u], found[4u / 4u][4u % 4u]);
            let shrink = exp(highest[4u] - now);
            highest[4u] = now;
            scores[4u] = weights_of(scores[4u], now);
            total[4u] = total[4u] * shrink + dot(scores[4u], vec4<f32>(1.0));
            sums[8u * 0u + 4u] *= shrink;
        }
        {
            let now = max(highest[5u], found[5u / 4u][5u % 4u]);
            let shrink = exp(highest[5u] - now);
            highest[5u] = now;
            scores[5u] = weights_of(scores[5u], now);
            total[5u] = total[5u] * shrink + dot(scores[5u], vec4<f32>(1.0));
            sums[8u * 0u + 5u] *= shrink;
        }
        {
            let now = max(highest[6u], found[6u / 4u][6u % 4u]);
            let shrink = exp(highest[6u] - now);
            highest[6u] = now;
            scores[6u] = weights_of(scores[6u], now);
            total[6u] = total[6u] * shrink + dot(scores[6u], vec4<f32>(1.0));
            sums[8u * 0u + 6u] *= shrink;
        }
        {
            let now = max(highest[7u], found[7u / 4u][7u % 4u]);
            let shrink = exp(highest[7u] - now);
            highest[7u] = now;
            scores[7u] = weights_of(scores[7u], now);
            total[7u] = total[7u] * shrink + dot(scores[7u], vec4<f32>(1.0));
            sums[8u * 0u + 7u] *= shrink;
        }
        for (var half = 0u; half < 2u; half++) {
            if (tx / 8u == half) {
                let x = at(ty, tx % 8u);
                tile[x + 64u * 0u] = scores[0u];
                tile[x + 64u * 1u] = scores[1u];
                tile[x + 64u * 2u] = scores[2u];
                tile[x + 64u * 3u] = scores[3u];
                tile[x + 64u * 4u] = scores[4u];
                tile[x + 64u * 5u] = scores[5u];
                tile[x + 64u * 6u] = scores[6u];
                tile[x + 64u * 7u] = scores[7u];
            }
            workgroupBarrier();
            bring_values(lane, 0u, kv_head, first + 32u * half, end - 1u);
            workgroupBarrier();
            for (var i = 0u; i < 8u; i++) {
                let x = at(ty, i);
                let y = 512u + 64u * i + tx;
                let values = array<vec4<f32>, 4>(tile[y], tile[y + 16u], tile[y + 32u], tile[y + 48u]);
                sums[8u * 0u + 0u] = plus_weighted(sums[8u * 0u + 0u], tile[x + 64u * 0u], values);
                sums[8u * 0u + 1u] = plus_weighted(sums[8u * 0u + 1u], tile[x + 64u * 1u], values);
                sums[8u * 0u + 2u] = plus_weighted(sums[8u * 0u + 2u], tile[x + 64u * 2u], values);
                sums[8u * 0u + 3u] = plus_weighted(sums[8u * 0u + 3u], tile[x + 64u * 3u], values);
                sums[8u * 0u + 4u] = plus_weighted(sums[8u * 0u + 4u], tile[x + 64u * 4u], values);
                sums[8u * 0u + 5u] = plus_weighted(sums[8u * 0u + 5u], tile[x + 64u * 5u], values);
                sums[8u * 0u + 6u] = plus_weighted(sums[8u * 0u + 6u], tile[x + 64u * 6u], values);
                sums[8u * 0u + 7u] = plus_weighted(sums[8u * 0u + 7u], tile[x + 64u * 7u], values);
            }
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
    {
        let row = m0 + ty + 8u * 0u;
        let sum = all[0u / 4u][0u % 4u];
        let scale = select(1.0 / sum, 0.0, sum == 0.0);
        if (row < p.m) {
            if (16u * 0u + tx < 8u) {
                out[(row * p.n_head + head) * 8u + 16u * 0u + tx] = sums[8u * 0u + 0u] * scale;
            }
        }
    }
    {
        let row = m0 + ty + 8u * 1u;
        let sum = all[1u / 4u][1u % 4u];
        let scale = select(1.0 / sum, 0.0, sum == 0.0);
        if (row < p.m) {
            if (16u * 0u + tx < 8u) {
                out[(row * p.n_head + head) * 8u + 16u * 0u + tx] = sums[8u * 0u + 1u] * scale;
            }
        }
    }
    {
        let row = m0 + ty + 8u * 2u;
        let sum = all[2u / 4u][2u % 4u];
        let scale = select(1.0 / sum, 0.0, sum == 0.0);
        if (row < p.m) {
            if (16u * 0u + tx < 8u) {
                out[(row * p.n_head + head) * 8u + 16u * 0u + tx] = sums[8u * 0u + 2u] * scale;
            }
        }
    }
    {
        let row = m0 + ty + 8u * 3u;
        let sum = all[3u / 4u][3u % 4u];
        let scale = select(1.0 / sum, 0.0, sum == 0.0);
        if (row < p.m) {
            if (16u * 0u + tx < 8u) {
                out[(row * p.n_head + head) * 8u + 16u * 0u + tx] = sums[8u * 0u + 3u] * scale;
            }
        }
    }
    {
        let row = m0 + ty + 8u * 4u;
        let sum = all[4u / 4u][4u % 4u];
        let scale = select(1.0 / sum, 0.0, sum == 0.0);
        if (row < p.m) {
            if (16u * 0u + tx < 8u) {
                out[(row * p.n_head + head) * 8u + 16u * 0u + tx] = sums[8u * 0u + 4u] * scale;
            }
        }
    }
    {
        let row = m0 + ty + 8u * 5u;
        let sum = all[5u / 4u][5u % 4u];
        let scale = select(1.0 / sum, 0.0, sum == 0.0);
        if (row < p.m) {
            if (16u * 0u + tx < 8u) {
                out[(row * p.n_head + head) * 8u + 16u * 0u + tx] = sums[8u * 0u + 5u] * scale;
            }
        }
    }
    {
        let row = m0 + ty + 8u * 6u;
        let sum = all[6u / 4u][6u % 4u];
        let scale = select(1.0 / sum, 0.0, sum == 0.0);
        if (row < p.m) {
            if (16u * 0u + tx < 8u) {
                out[(row * p.n_head + head) * 8u + 16u * 0u + tx] = sums[8u * 0u + 6u] * scale;
            }
        }
    }
    {
        let row = m0 + ty + 8u * 7u;
        let sum = all[7u / 4u][7u % 4u];
        let scale = select(1.0 / sum, 0.0, sum == 0.0);
        if (row < p.m) {
            if (16u * 0u + tx < 8u) {
                out[(row * p.n_head + head) * 8u + 16u * 0u + tx] = sums[8u * 0u + 7u] * scale;
            }
        }
    }
}
