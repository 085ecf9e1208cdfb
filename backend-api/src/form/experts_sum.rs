//! `experts_sum`: the last products of the experts that ids choose, added up with weights.
//!
//! *Operands*: x `[t, u, k]`; the weights of the experts; ids `[t, u]`; how much each counts `[t, u]`; with `bias` those of
//! the experts `[experts, rows]`; with `residual` `[t, rows]`. *Results*: `[t, rows]`.

use super::experts_glu::{Biased, add_bias, product};
use super::found::Found;
use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::links::Links;
use crate::op::{Binary, BinaryKind, MatMulId, Op, WeightedSum};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertsSum {
    /// Where the matrices lie.
    pub down: MatMulId,
    /// Whether experts have biases.
    pub bias: bool,
    /// Whether a residual is added at the end.
    pub residual: bool,
}

impl ExpertsSum {
    /// The places of the bias and the residual among the operands.
    pub fn places(&self) -> [Option<usize>; 2] {
        [self.bias.then_some(4), self.residual.then_some(4 + usize::from(self.bias))]
    }

    /// Those that begin at a product, the largest first.
    pub fn find(links: &Links<'_>, at: usize) -> Vec<Found<ExpertsSum>> {
        let Some(whole) = Self::sum(links, at) else { return Vec::new() };
        let residual = links.sum(whole.outputs[0]).and_then(|(sum, other, out)| {
            (links.tensor(other).shape == links.tensor(out).shape).then(|| Found {
                form: ExpertsSum { residual: true, ..whole.form },
                nodes: [&whole.nodes[..], &[sum]].concat(),
                inputs: [&whole.inputs[..], &[other]].concat(),
                outputs: vec![out],
            })
        });
        residual.into_iter().chain([whole]).collect()
    }

    fn sum(links: &Links<'_>, at: usize) -> Option<Found<ExpertsSum>> {
        let (down, x, w, ids) = product(links, at)?;
        let biased = Biased::find(links, at, ids);
        let (sum, user) = links.only_user(biased.out)?;
        let (Op::WeightedSum(_), [summed, weights]) = (&user.op, user.inputs.as_slice()) else { return None };
        (*summed == biased.out && links.tensor(x).shape.rank() == 3).then(|| Found {
            form: ExpertsSum { down, bias: biased.bias.is_some(), residual: false },
            nodes: [&biased.nodes[..], &[sum]].concat(),
            inputs: [x, w, ids, *weights].into_iter().chain(biased.bias).collect(),
            outputs: user.outputs.clone(),
        })
    }

    /// Records it as models do.
    ///
    /// *Errors*: operands that do not fit.
    pub fn record(&self, graph: &mut Graph, operands: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        let count = 4 + usize::from(self.bias) + usize::from(self.residual);
        let [x, w, ids, weights, ..] = *operands else {
            return Err(Error::Invalid(format!("experts_sum does not take {} operands", operands.len())));
        };
        if operands.len() != count {
            return Err(Error::Invalid(format!("experts_sum takes {count} operands, not {}", operands.len())));
        }
        let [bias, residual] = self.places().map(|place| place.map(|at| operands[at]));
        let y = graph.push(self.down, &[x, w, ids])?;
        let y = add_bias(graph, y, bias, ids)?;
        let y = graph.push(WeightedSum, &[y, weights])?;
        Ok(vec![match residual {
            Some(residual) => graph.push(Binary { kind: BinaryKind::Add }, &[y, residual])?,
            None => y,
        }])
    }
}
