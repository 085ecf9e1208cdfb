//! Columns of an operand: what forms read of a tensor that others have other parts of.

use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::links::Links;
use crate::op::{Op, Slice};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    /// The place of the operand.
    pub of: usize,
    /// The first of them.
    pub start: usize,
    /// Their number.
    pub len: usize,
}

impl Columns {
    /// All of an operand that is so wide.
    pub fn all(of: usize, len: usize) -> Columns {
        Columns { of, start: 0, len }
    }

    /// Records them as models do.
    pub(super) fn record(self, graph: &mut Graph, operands: &[TensorId]) -> Result<TensorId, Error> {
        let missing = || Error::Invalid(format!("operand {} is missing", self.of));
        let id = *operands.get(self.of).ok_or_else(missing)?;
        if self == Columns::all(self.of, graph.tensor(id).shape.cols()) {
            return Ok(id);
        }
        graph.push(Slice { start: self.start, len: self.len }, &[id])
    }
}

/// State of a matcher that has matched a part of its pattern.
pub(super) struct Finding<'l, 'g> {
    pub links: &'l Links<'g>,
    pub nodes: Vec<usize>,
    pub inputs: Vec<TensorId>,
}

impl Finding<'_, '_> {
    /// The place of an operand.
    pub fn place(&mut self, id: TensorId) -> usize {
        let known = self.inputs.iter().position(|known| *known == id);
        known.unwrap_or_else(|| {
            self.inputs.push(id);
            self.inputs.len() - 1
        })
    }

    /// A tensor that is read: columns of what it was sliced of, if nobody else has use for the slice.
    pub fn columns(&mut self, id: TensorId) -> Columns {
        let len = self.links.tensor(id).shape.cols();
        let slice = self.links.only_for_one(id).and_then(|(at, maker)| match maker.op {
            Op::Slice(slice) => Some((at, slice.start, maker.inputs[0])),
            _ => None,
        });
        let (start, source) = match slice {
            Some((at, start, source)) => {
                self.nodes.push(at);
                (start, source)
            }
            None => (0, id),
        };
        Columns { of: self.place(source), start, len }
    }

    /// Whether something is added to a slice: what is added to a product is better added there.
    pub fn is_sum_of_slice(&self, id: TensorId) -> bool {
        let first = self.links.only_for_one(id).and_then(|(_, sum)| self.links.maker(sum.inputs[0]));
        first.is_some_and(|(_, maker)| matches!(maker.op, Op::Slice(_)))
    }

    /// A vector for each row alike that is added to what becomes a tensor: the vector and the other summand.
    pub fn bias(&mut self, id: TensorId) -> Option<(TensorId, TensorId)> {
        let (at, sum) = self.links.only_for_one(id)?;
        let (Op::Binary(op), [a, b]) = (&sum.op, sum.inputs.as_slice()) else { return None };
        let is_vector = self.links.tensor(*b).shape.rank() == 1 && self.links.tensor(*a).shape.rank() == 2;
        (op.kind == crate::op::BinaryKind::Add && is_vector).then(|| {
            self.nodes.push(at);
            (*b, *a)
        })
    }
}
