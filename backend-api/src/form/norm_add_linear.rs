//! `norm_add_linear`: a [`NormAdd`] whose sum goes through a [`Linear`], and is a result as well.
//!
//! *Operands*: those of the norm and sum; then those of the linear but its first. *Results*: the sum; that of the linear.

use super::found::Found;
use super::linear::Linear;
use super::norm_add::NormAdd;
use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::links::Links;
use crate::op::Op;

/// Users of the sum that are looked at.
const LOOK: usize = 4;

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormAddLinear {
    /// The norm and the sum.
    pub sum: NormAdd,
    /// Matmul that takes the sum.
    pub linear: Linear,
}

impl NormAddLinear {
    /// How many of the operands are the norm's and the sum's.
    pub fn sum_operands(&self) -> usize {
        2 + self.sum.norm.kind.params()
    }

    /// Those that begin at a norm.
    pub fn find(links: &Links<'_>, at: usize) -> Vec<Found<NormAddLinear>> {
        let Some(first) = NormAdd::find(links, at) else { return Vec::new() };
        let sum = first.outputs[0];
        // The matmul, and the norm before it if nobody else needs that: then nobody needs the sum before the matmul.
        let matmul = |at: &usize| match links.node(*at).op {
            Op::MatMul(_) => Some((None, *at)),
            Op::Norm(_) => links.only_user(links.node(*at).outputs[0]).map(|(matmul, _)| (Some(*at), matmul)),
            _ => None,
        };
        let both = |(norm, matmul): (Option<usize>, usize)| {
            let linears = Linear::find(links, matmul).into_iter();
            let fitting =
                linears.filter(|linear| linear.inputs[0] == sum && linear.form.norm.is_some() == norm.is_some());
            let joined = |linear: Found<Linear>| {
                let mut found = first.clone().then(&linear, |sum, linear| NormAddLinear { sum, linear });
                found.nodes.extend(norm);
                Found { outputs: vec![sum, linear.outputs[0]], ..found }
            };
            fitting.map(joined).collect::<Vec<_>>()
        };
        links.users(sum).iter().take(LOOK).filter_map(matmul).flat_map(both).collect()
    }

    /// Records it as models do.
    ///
    /// *Errors*: operands that do not fit.
    pub fn record(&self, graph: &mut Graph, operands: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        let malformed = || Error::Invalid(format!("norm_add_linear does not take {} operands", operands.len()));
        let (head, tail) = operands.split_at_checked(self.sum_operands()).ok_or_else(malformed)?;
        let sum = self.sum.record(graph, head)?;
        Ok([&sum[..], &self.linear.record(graph, &[&sum[..], tail].concat())?].concat())
    }
}
