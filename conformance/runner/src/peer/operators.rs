//! From rows of the list to cases of ours, and why not.

use super::row::{Row, Source};
use super::{attention, images, matrices, moves, products, recurrent, rope};
use backend_api::case::{Case, Fill, Operands};
use backend_api::format::Format;
use backend_api::op::{ArgMax, Binary, BinaryKind, Glu, GluKind, Norm, NormKind, Scale, TopK, Unary, UnaryKind};
use backend_api::{StepParams, TensorId};

/// A case, or why there is none.
pub type Mapped = Result<Case, &'static str>;

const SEVERAL: &str = "several operators at once: forms have cases of their own";
pub const NO_OPERATOR: &str = "no operator of ours";
pub const DENSE: &str = "operands in 16 bits, integers or blocks where ours are 32-bit floats";
pub const VIEW: &str = "operands with strides: ours are contiguous";
const REPEAT: &str = "dimensions repeated other than from 1";
pub const UNKNOWN_TYPE: &str = "a type that ours has not here";

/// The case of a row.
pub fn case(row: &Row) -> Mapped {
    if row.whole_graph {
        return Err(SEVERAL);
    }
    let mut case = unary(row).or_else(|| glu(row)).unwrap_or_else(|| other(row))?;
    case.tolerance = case.tolerance.min(row.threshold);
    Ok(case)
}

fn other(row: &Row) -> Mapped {
    match row.op.as_str() {
        "ADD" => binary(row, BinaryKind::Add, (-1.0, 1.0)),
        "SUB" => binary(row, BinaryKind::Sub, (-1.0, 1.0)),
        "MUL" => binary(row, BinaryKind::Mul, (0.9, 1.1)),
        "DIV" => binary(row, BinaryKind::Div, (0.9, 1.1)),
        "SCALE" => {
            let op = Scale { factor: row.number("scale"), bias: row.number("bias") };
            floats(row)?;
            Ok(Case::new(op, &row.text, StepParams::at(0, 1), |o| vec![o.input(&row.sources[0].shape())]))
        }
        "NORM" => norm(row, NormKind::Layer, (-1.0, 1.0)),
        "RMS_NORM" => norm(row, NormKind::Rms, (-10.0, 10.0)),
        "SOFT_MAX" => attention::softmax(row),
        "ROPE" => rope::rope(row),
        "GET_ROWS" => products::get_rows(row),
        "MUL_MAT" => products::matmul(row),
        "MUL_MAT_ID" => products::matmul_id(row),
        "ADD_ID" => Err("rows looked up and added: two operators of ours"),
        "FLASH_ATTN_EXT" => attention::attention(row),
        "CONCAT" => moves::concat(row),
        "CONT" => moves::cont(row),
        "CPY" => moves::copy(row),
        "PAD" => moves::pad(row),
        "SSM_CONV" => recurrent::short_conv(row),
        "SSM_SCAN" => recurrent::ssm_scan(row),
        "GATED_DELTA_NET" => recurrent::gated_delta_net(row),
        "UPSCALE" => images::upscale(row),
        "IM2COL" => images::im2col(row),
        "CONV_2D" => images::conv_2d(row),
        "CONV_2D_DW" => images::conv_2d_dw(row),
        "SOLVE_TRI" => matrices::solve_tri(row),
        "MUL_MAT_HADAMARD" => matrices::hadamard(row),
        "ARGMAX" => {
            floats(row)?;
            let [_, _, rows, cols] = row.sources[0].shape();
            Ok(Case::new(ArgMax, &row.text, StepParams::at(0, 1), |o| vec![o.filled(&[rows, cols], Fill::Shuffled)]))
        }
        "TOP_K" => {
            floats(row)?;
            let op = TopK { k: row.number("k") };
            if op.k > TopK::MAX {
                return Err("more candidates than ours yields");
            }
            Ok(Case::new(op, &row.text, StepParams::at(0, 1), |o| {
                vec![o.filled(&row.sources[0].shape(), Fill::Shuffled)]
            }))
        }
        _ => Err(NO_OPERATOR),
    }
}

/// That all operands are 32-bit floats.
pub fn floats_of(row: &Row) -> Result<(), &'static str> {
    if row.sources.iter().any(|source| source.kind != "f32") { Err(DENSE) } else { Ok(()) }
}

/// That all operands are contiguous 32-bit floats.
pub fn floats(row: &Row) -> Result<(), &'static str> {
    floats_of(row)?;
    if !row.plain("v", "0") { Err(VIEW) } else { Ok(()) }
}

fn uniform(o: &mut Operands, source: &Source, (lo, hi): (f32, f32)) -> TensorId {
    o.filled(&source.shape(), Fill::Uniform(lo, hi))
}

fn unary(row: &Row) -> Option<Mapped> {
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
        _ => return None,
    };
    let case =
        || Case::new(Unary { kind }, &row.text, StepParams::at(0, 1), |o| vec![uniform(o, &row.sources[0], range)]);
    Some(floats(row).map(|()| case()))
}

fn glu(row: &Row) -> Option<Mapped> {
    let kind = match row.op.as_str() {
        "SWIGLU" => GluKind::Swiglu,
        "GEGLU" => GluKind::GegluTanh,
        "GEGLU_ERF" => GluKind::GegluErf,
        "REGLU" => GluKind::Reglu,
        "SWIGLU_OAI" => GluKind::SwigluOai,
        _ => return None,
    };
    let usual = row.plain("alpha", "1.702000") && row.plain("limit", "7.000000");
    if kind == GluKind::SwigluOai && !usual {
        return Some(Err("factors and limits that no model has"));
    }
    if kind != GluKind::SwigluOai && !row.says("split") {
        return Some(Err("both halves in one operand"));
    }
    let case = || {
        let both = |o: &mut Operands| row.sources.iter().map(|s| uniform(o, s, (-150.0, 150.0))).collect();
        Case::new(Glu { kind }, &row.text, StepParams::at(0, 1), both)
    };
    Some(floats(row).map(|()| case()))
}

fn binary(row: &Row, kind: BinaryKind, range: (f32, f32)) -> Mapped {
    floats(row)?;
    if !row.plain("perm1", "0") || !row.plain("src_overlap", "0") {
        return Err(VIEW);
    }
    let repeats = row.sources[0].dims.iter().zip(row.sources[1].dims).any(|(a, b)| *a != b && b != 1);
    if repeats {
        return Err(REPEAT);
    }
    Ok(Case::new(Binary { kind }, &row.text, StepParams::at(0, 1), |o| {
        row.sources.iter().map(|s| uniform(o, s, range)).collect()
    }))
}

fn norm(row: &Row, kind: NormKind, range: (f32, f32)) -> Mapped {
    floats(row)?;
    if !row.plain("noncontig_rows", "0") {
        return Err(VIEW);
    }
    let op = Norm { kind, eps: row.number("eps"), heads: 1 };
    let cols = row.sources[0].dims[0];
    Ok(Case::new(op, &row.text, StepParams::at(0, 1), |o| {
        let x = uniform(o, &row.sources[0], range);
        // The list's norms have no weights.
        let weights = [1.0, 0.0].into_iter().take(kind.params());
        [x].into_iter().chain(weights.map(|w| o.filled(&[cols], Fill::Values(vec![w]))).collect::<Vec<_>>()).collect()
    }))
}

/// Numbers in [0, 1) that look like chance.
pub fn spread(i: usize) -> f32 {
    (i as f32 * 0.618_034).fract()
}

pub fn format(kind: &str) -> Option<Format> {
    Format::ALL.iter().copied().find(|format| format.name().eq_ignore_ascii_case(kind))
}
