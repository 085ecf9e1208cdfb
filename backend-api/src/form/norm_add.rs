//! `norm_add`: a norm whose result is added to something.
//!
//! *Operands*: those of the norm; the other summand, like x. *Results*: like x.

use super::found::Found;
use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::links::Links;
use crate::op::{Binary, BinaryKind, Norm, Op};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormAdd {
    /// The norm.
    pub norm: Norm,
}

impl NormAdd {
    /// The one that begins at a norm, if there is one.
    pub fn find(links: &Links<'_>, at: usize) -> Option<Found<NormAdd>> {
        let node = links.node(at);
        let Op::Norm(norm) = node.op else { return None };
        let (sum, other, out) = links.sum(node.outputs[0])?;
        (links.tensor(other).shape == links.tensor(out).shape).then(|| Found {
            form: NormAdd { norm },
            nodes: vec![at, sum],
            inputs: [&node.inputs[..], &[other]].concat(),
            outputs: vec![out],
        })
    }

    /// Records it as models do.
    ///
    /// *Errors*: operands that do not fit.
    pub fn record(&self, graph: &mut Graph, operands: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        let malformed = || Error::Invalid("norm_add does not take 0 operands".into());
        let (other, front) = operands.split_last().ok_or_else(malformed)?;
        let x = graph.push(self.norm, front)?;
        Ok(vec![graph.push(Binary { kind: BinaryKind::Add }, &[x, *other])?])
    }
}
