//! `linear_qkv`: a [`Linear`] whose result a [`QkvAppend`] takes apart.
//!
//! *Operands*: those of the linear, whose weights are the rows of Q, K and V; then those of the append but its first.
//! *Results*: those of the append.

use super::found::Found;
use super::linear::{Activation, Linear};
use super::qkv_append::QkvAppend;
use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::links::Links;

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinearQkv {
    /// The projection, without activation and residual.
    pub linear: Linear,
    /// Split of the result into queries, keys and values.
    pub qkv: QkvAppend,
}

impl LinearQkv {
    /// How many of the operands are the linear's.
    pub fn linear_operands(&self) -> usize {
        2 + self.linear.norm.map_or(0, |n| n.kind.params()) + usize::from(self.linear.bias)
    }

    /// Those that begin at a matmul.
    pub fn find(links: &Links<'_>, at: usize) -> Vec<Found<LinearQkv>> {
        let linears = Linear::find(links, at).into_iter();
        let plain = linears.filter(|found| found.form.activation == Activation::None && !found.form.residual);
        let both = |linear: Found<Linear>| {
            let qkv = QkvAppend::of(links, linear.outputs[0])?;
            Some(linear.then(&qkv, |linear, qkv| LinearQkv { linear, qkv }))
        };
        plain.filter_map(both).collect()
    }

    /// Records it as models do.
    ///
    /// *Errors*: operands that do not fit.
    pub fn record(&self, graph: &mut Graph, operands: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        let malformed = || Error::Invalid(format!("linear_qkv does not take {} operands", operands.len()));
        let (head, tail) = operands.split_at_checked(self.linear_operands()).ok_or_else(malformed)?;
        let between = self.linear.record(graph, head)?;
        self.qkv.record(graph, &[&between[..], tail].concat())
    }
}
