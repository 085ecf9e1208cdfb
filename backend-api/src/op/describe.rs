//! The description that each operator's file provides, and the checks that shape rules are made of.

use crate::tensor::{DType, Shape, Tensor};

/// A result of an operator.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A new tensor.
    New(Shape, DType),
    /// The state that is this operand, after it was written to.
    Continues(usize),
}

/// Error tolerance of an operator, as NMSE against the reference: f32 rounding alone.
pub const F32: f64 = 1e-7;
/// Nothing is computed, so nothing may differ.
pub const EXACT: f64 = 0.0;

/// Description that each operator's file provides.
pub(crate) trait Describe {
    /// The operator's name in reports, vectors and shader file names.
    const NAME: &'static str;
    /// The largest NMSE against the reference that a correct kernel may have.
    const TOLERANCE: f64;
    /// Shapes and dtypes of the results, or why these operands do not fit.
    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String>;
}

/// Checks the number of operands.
pub(crate) fn arity<'a, const N: usize>(inputs: &[&'a Tensor]) -> Result<[&'a Tensor; N], String> {
    inputs.try_into().map_err(|_| format!("takes {N} operands, not {}", inputs.len()))
}

/// Checks that operands are dense f32.
pub(crate) fn floats(inputs: &[&Tensor]) -> Result<(), String> {
    match inputs.iter().find(|t| t.dtype != DType::F32) {
        Some(tensor) => Err(format!("operand {} must be dense f32, not {}", tensor.name, tensor.dtype)),
        None => Ok(()),
    }
}

/// Checks that operands are dense floats, in whatever codec a state keeps them.
pub(crate) fn floats_of_any_codec(inputs: &[&Tensor]) -> Result<(), String> {
    inputs.iter().filter(|t| !matches!(t.dtype, DType::Coded(_))).try_for_each(|t| floats(&[t]))
}

/// Fails with a reason unless a condition holds.
pub(crate) fn ensure(condition: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(why()) }
}

/// A shape, as a reason if it cannot be.
pub(crate) fn shape(dims: &[usize]) -> Result<Shape, String> {
    Shape::new(dims).map_err(|e| e.to_string())
}

/// `shape` with another innermost dimension.
pub(crate) fn with_cols(of: &Shape, cols: usize) -> Result<Shape, String> {
    let mut dims: Vec<usize> = of.dims().collect();
    match dims.last_mut() {
        Some(last) => *last = cols,
        None => dims.push(cols),
    }
    shape(&dims)
}
