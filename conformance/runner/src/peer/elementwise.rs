//! Functions of single elements, arithmetic, gated linear units.

use super::operators::{Mapped, VIEW, floats, graph, uniform};
use super::row::{Row, Source};
use super::views::{part, spaced, stored};
use backend_api::TensorId;
use backend_api::case::{Fill, Operands};
use backend_api::op::{Binary, BinaryKind, Clamp, Glu, GluKind, Repeat, Scale, Slice, Unary, UnaryKind, Xielu};

pub fn unary(row: &Row) -> Option<Mapped> {
    let (kind, range) = match row.op.as_str() {
        "GELU" => (UnaryKind::GeluTanh, (-150.0, 150.0)),
        "GELU_ERF" => (UnaryKind::GeluErf, (-150.0, 150.0)),
        "GELU_QUICK" => (UnaryKind::GeluQuick, (-150.0, 150.0)),
        "SILU" => (UnaryKind::Silu, (-150.0, 150.0)),
        "RELU" => (UnaryKind::Relu, (-150.0, 150.0)),
        "SIGMOID" => (UnaryKind::Sigmoid, (-150.0, 150.0)),
        "TANH" => (UnaryKind::Tanh, (-150.0, 150.0)),
        "EXP" => (UnaryKind::Exp, (-150.0, 150.0)),
        "ABS" => (UnaryKind::Abs, (-150.0, 150.0)),
        "NEG" => (UnaryKind::Neg, (-150.0, 150.0)),
        "SOFTPLUS" => (UnaryKind::Softplus, (-150.0, 150.0)),
        "HARDSWISH" => (UnaryKind::Hardswish, (-150.0, 150.0)),
        "FLOOR" => (UnaryKind::Floor, (-150.0, 150.0)),
        "CEIL" => (UnaryKind::Ceil, (-150.0, 150.0)),
        "SQRT" => (UnaryKind::Sqrt, (50.0, 100.0)),
        "LOG" => (UnaryKind::Log, (0.9, 1.1)),
        "SIN" => (UnaryKind::Sin, (-6.5, 6.5)),
        "COS" => (UnaryKind::Cos, (-6.5, 6.5)),
        "SGN" => (UnaryKind::Sign, (-150.0, 150.0)),
        "STEP" => (UnaryKind::Step, (-150.0, 150.0)),
        "ELU" => (UnaryKind::Elu, (-150.0, 150.0)),
        "HARDSIGMOID" => (UnaryKind::Hardsigmoid, (-150.0, 150.0)),
        "EXPM1" => (UnaryKind::Expm1, (-150.0, 150.0)),
        "ROUND" => (UnaryKind::Round, (-150.0, 150.0)),
        "TRUNC" => (UnaryKind::Trunc, (-150.0, 150.0)),
        _ => return None,
    };
    let case = || {
        graph(row, |o| {
            let x = viewed(o, row, &row.sources[0], [3, 2, 5, 4], range);
            o.push(Unary { kind }, &[x])
        })
    };
    Some(floats(row).map(|()| case()))
}

/// An operand that is a part of one so many times as large, if the row looks at parts.
fn viewed(o: &mut Operands, row: &Row, source: &Source, times: [usize; 4], range: (f32, f32)) -> TensorId {
    if row.plain("v", "0") {
        return uniform(o, source, range);
    }
    spaced(o, source, times, Fill::Uniform(range.0, range.1))
}

pub fn glu(row: &Row) -> Option<Mapped> {
    let kind = match row.op.as_str() {
        "SWIGLU" => GluKind::Swiglu,
        "GEGLU" => GluKind::GegluTanh,
        "GEGLU_ERF" => GluKind::GegluErf,
        "GEGLU_QUICK" => GluKind::GegluQuick,
        "REGLU" => GluKind::Reglu,
        "SWIGLU_OAI" => GluKind::SwigluOai,
        _ => return None,
    };
    let case = || {
        graph(row, |o| {
            let viewed = |o: &mut Operands, source| viewed(o, row, source, [3, 1, 1, 1], (-150.0, 150.0));
            let [gate, up] = match &row.sources[..] {
                [gate, up] => [gate, up].map(|source| viewed(o, source)),
                sources => {
                    // Both halves in one operand, in either order.
                    let (both, len) = (viewed(o, &sources[0]), sources[0].dims[0] / 2);
                    let starts = if row.plain("swapped", "0") { [0, len] } else { [len, 0] };
                    starts.map(|start| o.push(Slice { start, len }, &[both]))
                }
            };
            let usual = row.plain("alpha", "1.702000") && row.plain("limit", "7.000000");
            if kind == GluKind::SwigluOai && !usual {
                return limited(o, gate, up, row.number("alpha"), row.number("limit"));
            }
            o.push(Glu { kind }, &[gate, up])
        })
    };
    Some(floats(row).map(|()| case()))
}

/// A gated linear unit with any factor and limit, which no model has and no kernel.
fn limited(o: &mut Operands, gate: TensorId, up: TensorId, alpha: f32, limit: f32) -> TensorId {
    let gate = o.push(Clamp { lo: f32::MIN, hi: limit }, &[gate]);
    let share = o.push(Scale { factor: alpha, bias: 0.0 }, &[gate]);
    let share = o.push(Unary { kind: UnaryKind::Sigmoid }, &[share]);
    let gate = o.push(Binary { kind: BinaryKind::Mul }, &[gate, share]);
    let up = o.push(Clamp { lo: -limit, hi: limit }, &[up]);
    let up = o.push(Scale { factor: 1.0, bias: 1.0 }, &[up]);
    o.push(Binary { kind: BinaryKind::Mul }, &[gate, up])
}

pub fn binary(row: &Row, kind: BinaryKind, range: (f32, f32)) -> Mapped {
    floats(row)?;
    let [a, b] = &row.sources[..] else { return Err(VIEW) };
    let fill = || Fill::Uniform(range.0, range.1);
    Ok(graph(row, |o| {
        if !row.plain("src_overlap", "0") {
            // Two parts of one buffer, which have its middle third in common.
            let len = a.shape();
            let dims = [len[0] / 2 * 3, len[1], len[2], len[3]];
            let both = o.filled(&dims, fill());
            let operands = [0, len[0] / 2].map(|first| part(o, both, dims, [first, 0, 0, 0], len));
            return o.push(Binary { kind }, &operands);
        }
        let x = o.filled(&a.shape(), fill());
        let order = if row.plain("perm1", "0") { [0, 1, 2, 3] } else { [1, 2, 0, 3] };
        let mut y = stored(o, b, order, fill());
        // Dimensions of 1 are repeated by ours itself.
        let (whole, tile) = (a.shape(), b.shape());
        if tile.iter().zip(whole).any(|(tile, whole)| ![1, whole].contains(tile)) {
            y = o.push(Repeat { times: std::array::from_fn(|axis| whole[axis] / tile[axis]) }, &[y]);
        }
        o.push(Binary { kind }, &[x, y])
    }))
}

pub fn square(row: &Row) -> Mapped {
    floats(row)?;
    Ok(graph(row, |o| {
        let x = uniform(o, &row.sources[0], (-1.0, 1.0));
        o.push(Binary { kind: BinaryKind::Mul }, &[x, x])
    }))
}

pub fn scale(row: &Row) -> Mapped {
    floats(row)?;
    Ok(graph(row, |o| {
        let x = uniform(o, &row.sources[0], (-1.0, 1.0));
        o.push(Scale { factor: row.number("scale"), bias: row.number("bias") }, &[x])
    }))
}

/// Nothing of a tensor, and an offset: a constant.
pub fn fill(row: &Row) -> Mapped {
    floats(row)?;
    Ok(graph(row, |o| {
        let x = uniform(o, &row.sources[0], (-1.0, 1.0));
        o.push(Scale { factor: 0.0, bias: row.number("c") }, &[x])
    }))
}

pub fn clamp(row: &Row) -> Mapped {
    floats(row)?;
    Ok(graph(row, |o| {
        let x = uniform(o, &row.sources[0], (-1.0, 1.0));
        o.push(Clamp { lo: row.number("min"), hi: row.number("max") }, &[x])
    }))
}

/// The list names no parameters: these are of the order of a model's.
pub fn xielu(row: &Row) -> Mapped {
    floats(row)?;
    Ok(graph(row, |o| {
        let x = uniform(o, &row.sources[0], (-1.0, 1.0));
        o.push(Xielu { positive: 20.0, negative: 4.5, linear: 0.5, eps: 1e-7 }, &[x])
    }))
}
