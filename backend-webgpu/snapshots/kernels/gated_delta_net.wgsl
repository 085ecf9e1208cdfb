// gated_delta_net subgroups shuffled gates
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
    channels: u32,
    rows: u32,
    dk: u32,
    dv: u32,
    heads: u32,
    heads_k: u32,
    gates: u32,
    scale: f32,
    q_cols: u32,
    q_start: u32,
    k_cols: u32,
    k_start: u32,
    v_cols: u32,
    v_start: u32,
    g_cols: u32,
    g_start: u32,
    beta_cols: u32,
    beta_start: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> q: array<f32>;
@group(0) @binding(3) var<storage, read> v: array<f32>;
@group(0) @binding(4) var<storage, read> g: array<f32>;
@group(0) @binding(5) var<storage, read> bias: array<f32>;
@group(0) @binding(6) var<storage, read> decays: array<f32>;
@group(0) @binding(7) var<storage, read_write> out: array<f32>;
@group(0) @binding(8) var<storage, read_write> state: array<f32>;

fn safe_tanh(x: f32) -> f32 {
    let nan = (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
    return select(tanh(clamp(x, -15.0, 15.0)), x, nan);
}
fn unary_gelu_tanh(x: f32) -> f32 {
    return 0.5 * x * (1.0 + unary_tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

fn erf(x: f32) -> f32 {
    let a = min(abs(x), 9.0);
    let t = 1.0 / (1.0 + 0.3275911 * a);
    let poly = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
    return sign(x) * (1.0 - poly * exp(-a * a));
}

fn unary_gelu_erf(x: f32) -> f32 {
    return 0.5 * x * (1.0 + erf(x * 0.7071067811865475));
}

fn unary_gelu_quick(x: f32) -> f32 {
    return x * unary_sigmoid(1.702 * x);
}

fn unary_silu(x: f32) -> f32 {
    return x * unary_sigmoid(x);
}

fn unary_relu(x: f32) -> f32 {
    return max(x, 0.0);
}

fn unary_sigmoid(x: f32) -> f32 {
    return 1.0 / (1.0 + exp(min(-x, 87.0)));
}

fn unary_tanh(x: f32) -> f32 {
    return safe_tanh(x);
}

fn unary_exp(x: f32) -> f32 {
    return exp(x);
}

fn unary_log(x: f32) -> f32 {
    return log(x);
}

fn unary_sqrt(x: f32) -> f32 {
    return sqrt(x);
}

fn sine(x: f32, quarters: i32) -> f32 {
    let turns = round(x * 0.6366197723675814);
    let r = ((x - turns * 1.5703125) - turns * 4.837512969970703e-4) - turns * 7.549789954891882e-8;
    let z = r * r;
    let s = r + r * z * ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1);
    let c = 1.0 - 0.5 * z + z * z * ((2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2);
    let quadrant = (i32(turns) + quarters) & 3;
    let value = select(s, c, (quadrant & 1) == 1);
    return select(value, -value, quadrant >= 2);
}

fn unary_sin(x: f32) -> f32 {
    return sine(x, 0);
}

fn unary_cos(x: f32) -> f32 {
    return sine(x, 1);
}

fn unary_abs(x: f32) -> f32 {
    return abs(x);
}

fn unary_neg(x: f32) -> f32 {
    return -x;
}

fn unary_floor(x: f32) -> f32 {
    return floor(x);
}

fn unary_ceil(x: f32) -> f32 {
    return ceil(x);
}

fn unary_softplus(x: f32) -> f32 {
    return max(x, 0.0) + log(1.0 + exp(-abs(x)));
}

fn unary_hardswish(x: f32) -> f32 {
    return x * clamp((x + 3.0) / 6.0, 0.0, 1.0);
}

fn unary_sign(x: f32) -> f32 {
    return sign(x);
}

fn unary_step(x: f32) -> f32 {
    return select(0.0, 1.0, x > 0.0);
}

fn unary_elu(x: f32) -> f32 {
    return select(unary_expm1(min(x, 0.0)), x, x > 0.0);
}

fn unary_hardsigmoid(x: f32) -> f32 {
    return clamp((x + 3.0) / 6.0, 0.0, 1.0);
}

fn unary_expm1(x: f32) -> f32 {
    let tail = x / 5.0 * (1.0 + x / 6.0 * (1.0 + x / 7.0 * (1.0 + x / 8.0)));
    let near = x * (1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0 * (1.0 + tail))));
    return select(exp(x) - 1.0, near, abs(x) < 0.5);
}

fn unary_round(x: f32) -> f32 {
    let whole = trunc(x);
    return whole + select(0.0, sign(x), abs(x - whole) >= 0.5);
}

fn unary_trunc(x: f32) -> f32 {
    return trunc(x);
}

fn unary_none(x: f32) -> f32 {
    return x;
}
const TOGETHER: u32 = min(4u, 8u);

fn together_sum(own: vec3<f32>) -> vec3<f32> {
    var sum = own;
    for (var apart = 1u; apart < TOGETHER; apart <<= 1u) {
        sum += subgroupShuffleXor(sum, apart);
    }
    return sum;
}

var<workgroup> lanes_sums: array<vec3<f32>, 64u / TOGETHER>;

fn lanes_begin(lane: u32, own: vec3<f32>) -> vec3<f32> {
    let sum = together_sum(own);
    if (4u > TOGETHER && lane % TOGETHER == 0u) {
        lanes_sums[lane / TOGETHER] = sum;
    }
    return sum;
}

fn lanes_meet() {
    if (4u > TOGETHER) {
        workgroupBarrier();
    }
}

fn lanes_end(lane: u32, begun: vec3<f32>) -> vec3<f32> {
    if (4u == TOGETHER) {
        return begun;
    }
    let first = lane / 4u * (4u / TOGETHER);
    var sum = lanes_sums[first];
    for (var i = 1u; i < 4u / TOGETHER; i++) {
        sum += lanes_sums[first + i];
    }
    return sum;
}
fn position_of(row: u32) -> u32 {
    return step.position + row;
}

fn before_sequence(row: u32, capacity: u32) -> u32 {
    return 0u;
}

fn walk_begin(z: u32) -> u32 {
    return 0u;
}

fn walk_end(z: u32, rows: u32) -> u32 {
    return rows;
}

@compute @workgroup_size(64u)
fn main(
    @builtin(workgroup_id) group_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let wid = group_id + step.origin;
    let channel = (wid.y * groups.x + wid.x) * (64u / 4u) + lane / 4u;
    let part = lane % 4u;
    let mine = min(channel, p.channels - 1u);
    let head = mine / p.dv;
    let head_k = head % p.heads_k;
    let begin = walk_begin(wid.z);
    let end = walk_end(wid.z, p.rows);
    let first = (before_sequence(begin, p.channels) + mine) * p.dk;
    var own: array<f32, 9u>;
    for (var i = 0u; i < 9u; i++) {
        let at = part + i * 4u;
        own[i] = select(0.0, state[first + min(at, p.dk - 1u)], at < p.dk && channel < p.channels);
    }
    let real = min(step.rows, end);
    for (var row = begin; row < real; row++) {
        let q_at = row * p.q_cols + p.q_start + head_k * p.dk;
        let k_at = row * p.k_cols + p.k_start + head_k * p.dk;
        let g_at = row * p.g_cols + p.g_start + head * p.gates;
        var share = g[row * p.beta_cols + p.beta_start + head];
        share = unary_sigmoid(share);
        let fade = exp(unary_softplus(g[g_at] + bias[head]) * decays[head]);
        var sum = vec3<f32>(0.0);
        for (var i = 0u; i < 9u; i++) {
            let at = min(part + i * 4u, p.dk - 1u);
            own[i] *= fade;
            let key = q[k_at + at];
            let query = q[q_at + at];
            let more = vec3<f32>(own[i] * key, own[i] * query, key * query);
            sum += select(vec3<f32>(0.0), more, part + i * 4u < p.dk);
        }
        let begun = lanes_begin(lane, sum);
        lanes_meet();
        if (part == 0u) {
            let all = lanes_end(lane, begun);
            let learned = (v[row * p.v_cols + p.v_start + mine] - all.x) * share;
            if (channel < p.channels) {
                out[row * p.channels + mine] = (all.y + learned * all.z) * p.scale;
            }
            learned_of[lane / 4u] = learned;
        }
        workgroupBarrier();
        let learned = learned_of[lane / 4u];
        for (var i = 0u; i < 9u; i++) {
            own[i] += learned * q[k_at + min(part + i * 4u, p.dk - 1u)];
        }
        workgroupBarrier();
    }
    if (channel >= p.channels) {
        return;
    }
    for (var i = part; i < p.dk && begin < real; i += 4u) {
        state[first + i] = own[i / 4u];
    }
    for (var row = max(real, begin) + part; row < end; row += 4u) {
        out[row * p.channels + mine] = 0.0;
    }
}

var<workgroup> learned_of: array<f32, 64u / 4u>;
