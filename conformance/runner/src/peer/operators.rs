//! From rows of the list to cases of ours, and why not. Operators are in files by kind.

use super::row::{Row, Source};
use super::{elementwise, moves, products, recurrent, rows};
use backend_api::case::{Case, Fill, Operands};
use backend_api::op::{BinaryKind, NormKind};
use backend_api::{StepParams, TensorId};

/// A case, or why there is none.
pub type Mapped = Result<Case, &'static str>;

const SEVERAL: &str = "several operators at once: forms have cases of their own";
pub const NO_OPERATOR: &str = "no operator of ours";
pub const DENSE: &str = "operands in 16 bits, integers or blocks where ours are 32-bit floats";
pub const VIEW: &str = "operands with strides that no copy of ours makes: of codes, blocks or integers";
pub const BATCH: &str = "a batch that ours has not";
pub const UNKNOWN_TYPE: &str = "a type that ours has not here";

/// The case of a row.
pub fn case(row: &Row) -> Mapped {
    if row.whole_graph {
        return Err(SEVERAL);
    }
    let mut case = elementwise::unary(row).or_else(|| elementwise::glu(row)).unwrap_or_else(|| other(row))?;
    case.tolerance = case.tolerance.min(row.threshold);
    Ok(case)
}

fn other(row: &Row) -> Mapped {
    match row.op.as_str() {
        "ADD" => elementwise::binary(row, BinaryKind::Add, (-1.0, 1.0)),
        "SUB" => elementwise::binary(row, BinaryKind::Sub, (-1.0, 1.0)),
        "MUL" => elementwise::binary(row, BinaryKind::Mul, (0.9, 1.1)),
        "DIV" => elementwise::binary(row, BinaryKind::Div, (0.9, 1.1)),
        "SQR" => elementwise::square(row),
        "SCALE" => elementwise::scale(row),
        "FILL" => elementwise::fill(row),
        "CLAMP" => elementwise::clamp(row),
        "XIELU" => elementwise::xielu(row),
        "NORM" => rows::norm(row, NormKind::Layer, (-1.0, 1.0)),
        "RMS_NORM" => rows::norm(row, NormKind::Rms, (-10.0, 10.0)),
        "L2_NORM" => rows::norm(row, NormKind::L2, (-1.0, 1.0)),
        "SOFT_MAX" => rows::softmax(row),
        "ROPE" => rows::rope(row),
        "GET_ROWS" => rows::get_rows(row),
        "ADD_ID" => rows::add_id(row),
        "SUM" => rows::sum(row),
        "SUM_ROWS" => rows::sum_rows(row),
        "MEAN" => rows::mean(row),
        "CUMSUM" => rows::cumsum(row),
        "ARGMAX" => rows::argmax(row),
        "ARGSORT" => rows::argsort(row),
        "TOP_K" => rows::top_k(row),
        "MUL_MAT" => products::matmul(row),
        "MUL_MAT_ID" => products::matmul_id(row),
        "FLASH_ATTN_EXT" => products::attention(row),
        "CONCAT" => moves::concat(row),
        "CONT" | "DUP" => moves::cont(row),
        "CPY" => moves::copy(row),
        "PAD" => moves::pad(row),
        "REPEAT" => moves::repeat(row),
        "SET" => moves::set(row),
        "TRI" => moves::tri(row),
        "DIAG" => moves::diag(row),
        "SSM_CONV" => recurrent::short_conv(row),
        "SSM_SCAN" => recurrent::ssm_scan(row),
        "GATED_DELTA_NET" => recurrent::gated_delta_net(row),
        _ => Err(NO_OPERATOR),
    }
}

/// That all operands are 32-bit floats.
pub fn floats(row: &Row) -> Result<(), &'static str> {
    if row.sources.iter().any(|source| source.kind != "f32") { Err(DENSE) } else { Ok(()) }
}

/// A case of one node after those that make its operands: copies, where the list's have strides.
pub fn graph(row: &Row, build: impl FnOnce(&mut Operands) -> TensorId) -> Case {
    Case::graph("graph", &row.text, StepParams::at(0, 1), |o| vec![build(o)])
}

pub fn uniform(o: &mut Operands, source: &Source, (lo, hi): (f32, f32)) -> TensorId {
    o.filled(&source.shape(), Fill::Uniform(lo, hi))
}

/// Numbers in [0, 1) that look like chance.
pub fn spread(i: usize) -> f32 {
    (i as f32 * 0.618_034).fract()
}
