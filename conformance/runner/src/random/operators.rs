//! For each operator a case drawn at random: any shape, broadcast and parameter that it allows, in small.

use super::draw::Draw;
use super::images;
use super::tensors;
use backend_api::case::{Case, Fill, Operands};
use backend_api::form::{Activation, ExpertsGlu, ExpertsSum, Form, Linear};
use backend_api::format::Format;
use backend_api::op::{
    Append, ArgMax, At, Attention, Binary, BinaryKind, Concat, Gate, GatedDeltaNet, GetRows, Glu, GluKind, Groups,
    Index, Masking, MatMul, MatMulId, Norm, NormKind, Pad, Permute, Rope, RopeMode, RopeTable, Route, Scale, ShortConv,
    Slice, Softmax, SsmScan, TopK, Unary, UnaryKind, WeightedSum,
};
use backend_api::{Codec, DType, Kind, Shape, StepParams, TensorId};

/// Makes a case of what it draws.
pub type Make = fn(&mut Draw<'_>) -> Case;

/// The operators and forms by name.
pub const ALL: &[(&str, Make)] = &[
    ("get_rows", get_rows),
    ("matmul", matmul),
    ("norm", norm),
    ("softmax", softmax),
    ("unary", unary),
    ("binary", binary),
    ("scale", scale),
    ("glu", glu),
    ("rope", rope),
    ("permute", permute),
    ("slice", slice),
    ("concat", concat),
    ("pad", pad),
    ("append", append),
    ("argmax", argmax),
    ("top_k", top_k),
    ("penalize", tensors::penalize),
    ("pick", tensors::pick),
    ("attention", attention),
    ("short_conv", short_conv),
    ("route", route),
    ("matmul_id", matmul_id),
    ("weighted_sum", weighted_sum),
    ("ssm_scan", ssm_scan),
    ("gated_delta_net", gated_delta_net),
    ("resize", images::resize),
    ("im2col", images::im2col),
    ("conv2d", images::conv2d),
    ("solve_triangular", images::solve_triangular),
    ("clamp", tensors::clamp),
    ("xielu", tensors::xielu),
    ("sum", tensors::sum),
    ("cumsum", tensors::cumsum),
    ("argsort", tensors::argsort),
    ("repeat", tensors::repeat),
    ("set", tensors::set),
    ("tri", tensors::tri),
    ("chain", tensors::chain),
    ("linear", linear),
    ("experts_glu", experts_glu),
    ("experts_sum", experts_sum),
];

/// Where a few results might all happen to be small, there are more than this, for errors are relative to all together: sums
/// of large products, which the CPU rounds, and activations of large negative numbers.
const FEWEST: usize = 32;

/// Where products are multiplied with each other, they are also of more columns than this: a multiple of all block lengths.
const NARROWEST: usize = 256;

/// Functions after a product that grow as it does. Others jump, saturate or explode, and make small errors of large products
/// large.
const SMOOTH: &[UnaryKind] = &[
    UnaryKind::Silu,
    UnaryKind::Relu,
    UnaryKind::GeluTanh,
    UnaryKind::GeluErf,
    UnaryKind::GeluQuick,
    UnaryKind::Softplus,
    UnaryKind::Hardswish,
];

/// A case whose name is all that it was made of.
pub fn case(
    form: impl Into<Form> + std::fmt::Debug,
    step: StepParams,
    operands: impl FnOnce(&mut Operands) -> Vec<TensorId>,
) -> Case {
    let about = format!("{form:?}");
    let mut case = Case::new(form, "", step, operands);
    let shapes: Vec<_> =
        case.graph.externals().map(|(_, tensor)| format!("{} {}", tensor.dtype, tensor.shape)).collect();
    case.name = format!("{about} of {}, position {}, rows {}", shapes.join(", "), step.position, step.rows);
    case
}

pub fn once() -> StepParams {
    StepParams::at(0, 1)
}

/// A weight format, and a number of columns that it allows.
fn packed(draw: &mut Draw<'_>, cols: usize) -> (Format, usize) {
    let format = draw.pick(Format::ALL);
    let len = format.spec().block_len;
    (format, len * draw.size((cols / len).max(3)))
}

fn get_rows(draw: &mut Draw<'_>) -> Case {
    let (rows, ids) = (draw.size(50), draw.dims(1..=2, 9));
    let is_packed = draw.chance();
    let (format, cols) = packed(draw, 700);
    let dense_cols = draw.size(200);
    let mut case = case(GetRows { index: Index::Ids }, once(), |o| {
        let table = if is_packed { o.packed(format, rows, cols) } else { o.input(&[rows, dense_cols]) };
        vec![table, o.ids(&ids, rows as u32)]
    });
    if is_packed {
        // Decoding computes, where looking up does not.
        case.tolerance = 1e-7;
    }
    case
}

fn matmul(draw: &mut Draw<'_>) -> Case {
    let (m, n) = (draw.size(24), draw.size(150));
    if draw.chance() {
        let (format, k) = packed(draw, 700);
        let n = FEWEST + n;
        return case(MatMul, once(), |o| vec![o.input(&[m, k]), o.packed(format, n, k)]);
    }
    let (k, rank) = (draw.size(130), draw.number(2, 4));
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 2..rank {
        // One batch is repeated to be the other.
        let (few, times, swap) = (draw.size(3), draw.size(3), draw.chance());
        let [small, large] = [few, few * times];
        a.push(if swap { small } else { large });
        b.push(if swap { large } else { small });
    }
    a.extend([m, k]);
    b.extend([n, k]);
    case(MatMul, once(), |o| vec![o.input(&a), o.input(&b)])
}

fn norm(draw: &mut Draw<'_>) -> Case {
    let (kind, eps, heads) = (draw.pick(&NormKind::ALL), draw.pick(&[1e-5, 1e-6, 1e-2]), draw.size(5));
    let own = if draw.chance() { heads } else { 1 };
    let mut dims = draw.dims(1..=4, 300);
    let width = dims[dims.len() - 1];
    *dims.last_mut().expect("dims has a column") = width * heads;
    case(Norm { kind, eps, heads }, once(), |o| {
        let x = o.filled(&dims, Fill::Uniform(-10.0, 11.0));
        let params: Vec<_> = (0..kind.params()).map(|_| o.weight(&[own * width])).collect();
        [x].into_iter().chain(params).collect()
    })
}

/// A way to mask so many keys for so many queries, and a step at which it makes sense.
fn masking(draw: &mut Draw<'_>, m: usize, n: usize) -> (Masking, StepParams) {
    let causal = draw.chance();
    let cached = draw.chance() && m <= n;
    let window = if draw.chance() { draw.size(n) as u32 } else { 0 };
    let masking = Masking { causal, window, cached, explicit: draw.chance() };
    let step = if cached {
        let rows = draw.number(1, m);
        StepParams::at(draw.number(0, n - m) as u32, rows as u32)
    } else {
        StepParams::at(0, m as u32)
    };
    (masking, step)
}

fn softmax(draw: &mut Draw<'_>) -> Case {
    let mut dims = draw.dims(2..=4, 400);
    let [.., m, n] = dims[..] else { unreachable!("there are two dimensions or more") };
    let (masking, step) = masking(draw, m, n);
    if masking.cached {
        // Rows beyond the step's real ones are not specified.
        let at = dims.len() - 2;
        dims[at] = step.rows as usize;
    }
    let (scale, softcap) = (draw.pick(&[1.0, 0.25]), draw.pick(&[0.0, 7.0]));
    let heads = if dims.len() > 2 { dims[dims.len() - 3] } else { 1 };
    let sinks = draw.chance();
    case(Softmax { scale, softcap, masking, sinks }, step, |o| {
        let x = o.filled(&dims, Fill::Uniform(-20.0, 20.0));
        let mask = masking.explicit.then(|| o.filled(&dims[dims.len() - 2..], Fill::Mask));
        let sinks = sinks.then(|| o.filled(&[heads], Fill::Uniform(-10.0, 20.0)));
        [x].into_iter().chain(mask).chain(sinks).collect()
    })
}

/// Dimensions with so many columns that not all results are those of large negative numbers, which vanish.
pub fn wide(draw: &mut Draw<'_>) -> Vec<usize> {
    let mut dims = draw.dims(1..=4, 300);
    *dims.last_mut().expect("dims has a column") += FEWEST;
    dims
}

fn unary(draw: &mut Draw<'_>) -> Case {
    let (kind, dims) = (draw.pick(UnaryKind::ALL), wide(draw));
    let (lo, hi) = kind.range();
    case(Unary { kind }, once(), |o| vec![o.filled(&dims, Fill::Uniform(lo, hi))])
}

fn binary(draw: &mut Draw<'_>) -> Case {
    let (kind, whole) = (draw.pick(BinaryKind::ALL), draw.dims(1..=4, 200));
    // Of each dimension at least one operand has all.
    let (mut a, mut b) = (whole.clone(), whole.clone());
    for axis in 0..whole.len() {
        match draw.number(0, 4) {
            3 => a[axis] = 1,
            4 => b[axis] = 1,
            _ => {}
        }
    }
    let lead = draw.number(0, whole.len() - 1);
    let (a, b) = if draw.chance() { (a, b[lead..].to_vec()) } else { (a[lead..].to_vec(), b) };
    case(Binary { kind }, once(), |o| vec![o.input(&a), o.filled(&b, Fill::Uniform(0.5, 1.5))])
}

fn scale(draw: &mut Draw<'_>) -> Case {
    let (factor, bias) = (draw.pick(&[1.0, 25.298_221, -2.0]), draw.pick(&[0.0, 3.5]));
    let dims = draw.dims(1..=4, 300);
    case(Scale { factor, bias }, once(), |o| vec![o.filled(&dims, Fill::Uniform(-10.0, 10.0))])
}

fn glu(draw: &mut Draw<'_>) -> Case {
    let (kind, dims) = (draw.pick(GluKind::ALL), wide(draw));
    case(Glu { kind }, once(), |o| vec![o.filled(&dims, Fill::Uniform(-150.0, 150.0)), o.input(&dims)])
}

fn rope(draw: &mut Draw<'_>) -> Case {
    let (mode, n_head, tokens) = (draw.pick(&[RopeMode::Normal, RopeMode::Neox]), draw.size(9), draw.size(9));
    let n_dims = 2 * draw.size(40);
    let (more, position) = (draw.size(20) - 1, draw.size(30) - 1);
    let rows = position + tokens;
    let table = RopeTable::plain(n_dims, 10_000.0).rows((0..rows as u32).map(|p| p * 37));
    case(Rope { n_head, n_dims, mode }, StepParams::at(position as u32, tokens as u32), |o| {
        let x = o.input(&[tokens, n_head * (n_dims + more)]);
        vec![x, o.filled(&[rows, n_dims], Fill::Values(table))]
    })
}

fn permute(draw: &mut Draw<'_>) -> Case {
    let dims = draw.dims(1..=4, 60);
    let perm = draw.order(dims.len());
    let view = Shape::new(&dims).expect("at most four dimensions");
    // The source may have any shape of this size.
    let source = if draw.chance() { vec![dims.iter().product()] } else { dims };
    case(Permute { view, perm }, once(), |o| vec![o.input(&source)])
}

fn slice(draw: &mut Draw<'_>) -> Case {
    let (dims, start, len) = (draw.dims(1..=4, 100), draw.size(50) - 1, draw.size(100));
    let mut whole = dims;
    *whole.last_mut().expect("dims has a column") += start + len;
    case(Slice { start, len }, once(), |o| vec![o.input(&whole)])
}

fn concat(draw: &mut Draw<'_>) -> Case {
    let a = draw.dims(1..=4, 100);
    let axis = draw.number(0, a.len() - 1);
    let mut b = a.clone();
    b[axis] = draw.size(9);
    case(Concat { axis }, once(), |o| vec![o.input(&a), o.input(&b)])
}

fn pad(draw: &mut Draw<'_>) -> Case {
    let dims = draw.dims(1..=4, 60);
    let mut around =
        || -> [usize; 4] { std::array::from_fn(|axis| draw.number(0, if axis < 4 - dims.len() { 0 } else { 3 })) };
    let (before, after) = (around(), around());
    let circular = draw.chance();
    case(Pad { before, after, circular }, once(), |o| vec![o.input(&dims)])
}

/// A codec or none, and a number of columns that its rows may have.
fn coded(draw: &mut Draw<'_>, cols: usize) -> (Option<Codec>, usize) {
    let codec = draw.chance().then(|| draw.pick(Codec::ALL));
    let len = codec.map_or(1, |codec| codec.spec().block_len);
    (codec, len * draw.size((cols / len).max(1)))
}

fn append(draw: &mut Draw<'_>) -> Case {
    let (rows, (codec, cols)) = (draw.size(6), coded(draw, 300));
    let position = draw.size(20) - 1;
    let state = position + rows + draw.size(5) - 1;
    let step = StepParams::at(position as u32, draw.number(1, rows) as u32);
    case(Append { at: At::Position }, step, |o| vec![o.state(codec, &[state, cols]), o.input(&[rows, cols])])
}

fn argmax(draw: &mut Draw<'_>) -> Case {
    let dims = draw.dims(1..=3, 2000);
    case(ArgMax, once(), |o| vec![o.filled(&dims, Fill::Shuffled)])
}

fn top_k(draw: &mut Draw<'_>) -> Case {
    let dims = draw.dims(1..=3, 2000);
    let k = draw.size(TopK::MAX.min(dims[dims.len() - 1]));
    case(TopK { k }, once(), |o| vec![o.filled(&dims, Fill::Shuffled)])
}

fn attention(draw: &mut Draw<'_>) -> Case {
    let (n_head_kv, times, m, n) = (draw.size(4), draw.size(4), draw.size(12), draw.size(150));
    let ((keys, d), (values, dv)) = (coded(draw, 100), coded(draw, 100));
    let (masking, step) = masking(draw, m, n);
    // Rows beyond the step's real ones are not specified.
    let m = if masking.cached { step.rows as usize } else { m };
    let n_head = n_head_kv * times;
    let (softcap, sinks, mask_of_each) = (draw.pick(&[0.0, 5.0]), draw.chance(), draw.chance());
    let (scale, max_bias) = (1.0 / (d as f32).sqrt(), draw.pick(&[0.0, 0.0, 8.0, 1.5]));
    let op = Attention { n_head, n_head_kv, scale, softcap, max_bias, masking, sinks };
    case(op, step, |o| {
        let q = o.filled(&[m, n_head * d], Fill::Uniform(-2.0, 2.0));
        let (keys, values) = (o.keys(keys, &[n, n_head_kv * d]), o.keys(values, &[n, n_head_kv * dv]));
        let mask_dims = [n_head, m, n];
        let mask_dims = if mask_of_each { &mask_dims[..] } else { &mask_dims[1..] };
        let mask = masking.explicit.then(|| o.filled(mask_dims, Fill::Mask));
        let sinks = sinks.then(|| o.filled(&[n_head], Fill::Uniform(-1.0, 3.0)));
        [q, keys, values].into_iter().chain(mask).chain(sinks).collect()
    })
}

fn short_conv(draw: &mut Draw<'_>) -> Case {
    let (taps, rows, channels) = (1 + draw.size(ShortConv::MAX_TAPS - 1), draw.size(9), draw.size(150));
    let step = StepParams::at(3, draw.number(1, rows) as u32);
    case(ShortConv, step, |o| {
        vec![o.replaced(&[taps - 1, channels]), o.input(&[rows, channels]), o.weight(&[channels, taps])]
    })
}

fn route(draw: &mut Draw<'_>) -> Case {
    let (t, n, gate) = (draw.size(9), draw.size(150), draw.pick(&Gate::ALL));
    // Grouped or not; a group has two experts or more.
    let (count, size) = (draw.size(Route::MAX_GROUPS), 1 + draw.size(9));
    let groups = draw.chance().then(|| Groups { count, used: draw.size(count) });
    let (n, open) = groups.map_or((n, n), |groups| (count * size, groups.used * size));
    let k = draw.size(open.min(Route::MAX));
    let (biased, normalised, scale) = (draw.chance(), draw.chance(), draw.pick(&[1.0, 2.5]));
    let op = Route { k, gate, biased, normalised, scale, groups };
    case(op, StepParams::at(0, t as u32), |o| {
        let logits = o.filled(&[t, n], Fill::Uniform(-4.0, 4.0));
        let bias = op.biased.then(|| o.filled(&[n], Fill::Uniform(-0.5, 0.5)));
        [logits].into_iter().chain(bias).collect()
    })
}

/// Matrices of experts with gaps between them or none, and how many there are.
fn matrices(draw: &mut Draw<'_>) -> (MatMulId, usize) {
    let rows = FEWEST + draw.size(60);
    let (stride, first) = if draw.chance() { (rows, 0) } else { (rows + draw.size(9), draw.size(9)) };
    (MatMulId { rows, stride, first }, draw.size(5))
}

fn matmul_id(draw: &mut Draw<'_>) -> Case {
    let (t, u, (op, n), (format, k)) = (draw.size(6), draw.size(4), matrices(draw), packed(draw, 700));
    let (each, in_turn) = (draw.chance(), draw.chance());
    case(op, StepParams::at(0, t as u32), |o| {
        if in_turn {
            return vec![o.input(&[t, u, k]), o.packed(format, op.first + u * op.stride, k)];
        }
        let x = if each { o.input(&[t, u, k]) } else { o.input(&[t, k]) };
        vec![x, o.packed(format, op.first + n * op.stride, k), o.ids(&[t, u], n as u32)]
    })
}

fn weighted_sum(draw: &mut Draw<'_>) -> Case {
    let (t, u, m) = (draw.size(9), draw.size(9), FEWEST + draw.size(200));
    case(WeightedSum, StepParams::at(0, t as u32), |o| {
        vec![o.input(&[t, u, m]), o.filled(&[t, u], Fill::Uniform(0.1, 1.0))]
    })
}

fn experts_glu(draw: &mut Draw<'_>) -> Case {
    let (t, u, (gate, n), (format, k)) = (draw.size(6), draw.size(4), matrices(draw), packed(draw, 300));
    let norm = draw.pick(&[None, Some(NormKind::Rms)]).map(|kind| Norm { kind, eps: 1e-5, heads: 1 });
    let (bias, kind, k) = (draw.chance(), draw.pick(GluKind::ALL), NARROWEST + k);
    let op = ExpertsGlu { norm, gate, up: gate, bias, kind };
    case(op, StepParams::at(0, t as u32), |o| {
        let mut operands = vec![o.input(&[t, k])];
        operands.extend(norm.map(|_| o.weight(&[k])));
        operands.extend([(); 2].map(|()| o.packed(format, gate.first + n * gate.stride, k)));
        operands.push(o.ids(&[t, u], n as u32));
        operands.extend([(); 2].into_iter().filter(|()| bias).map(|()| o.weight(&[n, gate.rows])).collect::<Vec<_>>());
        operands
    })
}

fn experts_sum(draw: &mut Draw<'_>) -> Case {
    let (t, u, (down, n), (format, k)) = (draw.size(6), draw.size(4), matrices(draw), packed(draw, 500));
    let op = ExpertsSum { down, bias: draw.chance(), residual: draw.chance() };
    case(op, StepParams::at(0, t as u32), |o| {
        let mut operands = vec![o.input(&[t, u, k]), o.packed(format, down.first + n * down.stride, k)];
        operands.extend([o.ids(&[t, u], n as u32), o.filled(&[t, u], Fill::Uniform(0.1, 1.0))]);
        operands.extend(op.bias.then(|| o.weight(&[n, down.rows])));
        operands.extend(op.residual.then(|| o.input(&[t, down.rows])));
        operands
    })
}

fn ssm_scan(draw: &mut Draw<'_>) -> Case {
    let (rows, n, groups, wide) = (draw.size(20), draw.size(40), draw.size(3), draw.chance());
    let heads = groups * draw.size(5);
    let channels = heads * draw.size(9);
    let step = StepParams::at(3, draw.number(1, rows) as u32);
    case(SsmScan, step, |o| {
        let (state, x) = (o.replaced(&[channels, n]), o.input(&[rows, channels]));
        let dt = o.filled(&[rows, heads], Fill::Uniform(-6.0, 3.0));
        let a = [heads, if wide { n } else { 1 }];
        let a = o.external(Kind::Weight, &a, DType::F32, Fill::Uniform(-1.5, -0.1));
        let [b, c] = [0, 1].map(|_| o.input(&[rows, groups * n]));
        vec![state, x, dt, a, b, c, o.weight(&[heads])]
    })
}

fn gated_delta_net(draw: &mut Draw<'_>) -> Case {
    let (rows, dk, dv, heads_k) = (draw.size(9), draw.size(40), draw.size(40), draw.size(3));
    let (heads, grouped, by_column) = (heads_k * draw.size(3), draw.chance(), draw.chance());
    let step = StepParams::at(3, draw.number(1, rows) as u32);
    // Longer keys would have the state grow from row to row, and errors with it.
    let key = (3.0 / dk as f32).sqrt();
    case(GatedDeltaNet { grouped }, step, |o| {
        let state = o.replaced(&[heads * dv, dk]);
        let [q, k] = [0, 1].map(|_| o.filled(&[rows, heads_k * dk], Fill::Uniform(-key, key)));
        let v = o.input(&[rows, heads * dv]);
        let gates = heads * if by_column { dk } else { 1 };
        let g = o.filled(&[rows, gates], Fill::Uniform(-2.0, 0.0));
        vec![state, q, k, v, g, o.filled(&[rows, heads], Fill::Uniform(0.0, 1.0))]
    })
}

fn linear(draw: &mut Draw<'_>) -> Case {
    let (m, (format, k)) = (draw.size(12), packed(draw, 500));
    let kinds = [None, Some(NormKind::Rms), Some(NormKind::Layer)];
    let norm = draw.pick(&kinds).map(|kind| Norm { kind, eps: 1e-5, heads: 1 });
    let units = SMOOTH.iter().map(|kind| Activation::Unary(*kind));
    let gated = GluKind::ALL.iter().filter(|kind| kind.limit().is_none()).map(|kind| Activation::Glu(*kind));
    let all: Vec<_> = [Activation::None].into_iter().chain(gated).chain(units).collect();
    let (bias, activation, residual) = (draw.chance(), draw.pick(&all), draw.chance());
    let k = NARROWEST + k;
    let n = (FEWEST + draw.size(90)) * if matches!(activation, Activation::Glu(_)) { 2 } else { 1 };
    let op = Linear { norm, bias, activation, residual };
    case(op, StepParams::at(0, m as u32), |o| {
        let mut operands = vec![o.input(&[m, k])];
        operands.extend((0..norm.map_or(0, |norm| norm.kind.params())).map(|_| o.weight(&[k])).collect::<Vec<_>>());
        operands.push(o.packed(format, n, k));
        operands.extend(bias.then(|| o.weight(&[n])));
        operands.extend(residual.then(|| o.input(&[m, op.out_cols(n)])));
        operands
    })
}
