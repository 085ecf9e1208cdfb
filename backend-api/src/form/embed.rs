//! `embed`: token rows plus position rows.
//!
//! *Operands*: token table `[v, d]` packed; token history `[n_ctx]` i32; position table `[p, d]` packed.
//! *Results*: `[rows, d]`: for row i the token row of the history's entry at the step's position plus i, plus that
//! position's row. Ids and positions are clamped to the tables.

use super::found::Found;
use crate::error::Error;
use crate::graph::{Graph, Node, TensorId};
use crate::links::Links;
use crate::op::{Binary, BinaryKind, GetRows, Index, Op};
use crate::tensor::DType;

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Embed {
    /// Rows of the result.
    pub rows: usize,
}

impl Embed {
    /// The one that ends at a sum, if there is one.
    pub fn find(links: &Links<'_>, at: usize) -> Option<Found<Embed>> {
        let node = links.node(at);
        let (Op::Binary(Binary { kind: BinaryKind::Add }), [a, b]) = (&node.op, node.inputs.as_slice()) else {
            return None;
        };
        let rows_of = |id: TensorId| {
            let (at, maker) = links.only_for_one(id)?;
            let Op::GetRows(get) = &maker.op else { return None };
            Some((at, get.index, maker))
        };
        let (first, second) = (rows_of(*a)?, rows_of(*b)?);
        let swapped = matches!(second.1, Index::Tokens { .. });
        let (tokens, positions) = if swapped { (second, first) } else { (first, second) };
        let (Index::Tokens { rows }, Index::Positions { .. }) = (tokens.1, positions.1) else { return None };
        let packed = |node: &Node| matches!(links.tensor(node.inputs[0]).dtype, DType::Packed(_));
        let same = links.tensor(*a).shape == links.tensor(*b).shape;
        (same && packed(tokens.2) && packed(positions.2)).then(|| Found {
            form: Embed { rows },
            nodes: vec![at, tokens.0, positions.0],
            inputs: [&tokens.2.inputs[..], &positions.2.inputs].concat(),
            outputs: node.outputs.clone(),
        })
    }

    /// Records it as models do.
    ///
    /// *Errors*: operands that do not fit.
    pub fn record(&self, graph: &mut Graph, operands: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        let [table, history, learned] = *operands else {
            return Err(Error::Invalid(format!("embed does not take {} operands", operands.len())));
        };
        let rows = self.rows;
        let tokens = graph.push(GetRows { index: Index::Tokens { rows } }, &[table, history])?;
        let positions = graph.push(GetRows { index: Index::Positions { rows } }, &[learned])?;
        Ok(vec![graph.push(Binary { kind: BinaryKind::Add }, &[tokens, positions])?])
    }
}
