//! `experts_glu`: the gated linear unit of the experts that ids choose.
//!
//! *Operands*: x `[t, k]`; with `norm` gamma (and beta) `[k]`; the weights of gates; those of up parts, which may be the
//! same tensor; ids `[t, u]`; with `bias` those of gates and of up parts, `[experts, rows]` each.
//! *Results*: `[t, u, rows]`.

use super::found::Found;
use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::links::Links;
use crate::op::{Binary, BinaryKind, GetRows, Glu, GluKind, Index, MatMulId, Norm, Op};
use crate::tensor::DType;

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpertsGlu {
    /// A norm of x before the products.
    pub norm: Option<Norm>,
    /// Where the matrices of gates lie.
    pub gate: MatMulId,
    /// Where those of up parts lie.
    pub up: MatMulId,
    /// Whether experts have biases.
    pub bias: bool,
    /// Which activation gates.
    pub kind: GluKind,
}

/// The operands of an [`ExpertsGlu`] by name.
#[derive(Debug, Clone, Copy)]
pub struct ExpertsGluOperands<'a, T> {
    /// The input.
    pub x: &'a T,
    /// Gamma, then beta for layer norm; empty without a norm.
    pub norm: &'a [T],
    /// The weights of gates and of up parts.
    pub weights: [&'a T; 2],
    /// The ids.
    pub ids: &'a T,
    /// The biases of gates and of up parts.
    pub biases: Option<[&'a T; 2]>,
}

impl ExpertsGlu {
    /// Names the operands in a list; `None` if their number does not fit.
    pub fn operands<'a, T>(&self, list: &'a [T]) -> Option<ExpertsGluOperands<'a, T>> {
        let (x, rest) = list.split_first()?;
        let (norm, rest) = rest.split_at_checked(self.norm.map_or(0, |n| n.kind.params()))?;
        let [gate, up, ids, biases @ ..] = rest else { return None };
        let biases = match (self.bias, biases) {
            (false, []) => None,
            (true, [gate, up]) => Some([gate, up]),
            _ => return None,
        };
        Some(ExpertsGluOperands { x, norm, weights: [gate, up], ids, biases })
    }

    /// Those that begin at the product with the gates, with the norm before it and without.
    pub fn find(links: &Links<'_>, at: usize) -> Vec<Found<ExpertsGlu>> {
        Self::unit(links, at).map_or(Vec::new(), |plain| {
            let normed = links.maker(plain.inputs[0]).and_then(|(_, maker)| match maker.op {
                Op::Norm(norm) if norm.heads == 1 && norm.kind.by_mean() => Some(Found {
                    form: ExpertsGlu { norm: Some(norm), ..plain.form },
                    inputs: [&maker.inputs[..], &plain.inputs[1..]].concat(),
                    ..plain.clone()
                }),
                _ => None,
            });
            normed.into_iter().chain([plain]).collect()
        })
    }

    fn unit(links: &Links<'_>, at: usize) -> Option<Found<ExpertsGlu>> {
        let (gate, x, w_gate, ids) = product(links, at)?;
        let gated = Biased::find(links, at, ids);
        let (unit, user) = links.only_user(gated.out)?;
        let (Op::Glu(Glu { kind }), [a, b]) = (&user.op, user.inputs.as_slice()) else { return None };
        let (made, maker) = links.only_for_one(*b).filter(|_| *a == gated.out)?;
        // The up part is a product, or the sum of one and its bias.
        let first = match maker.op {
            Op::Binary(_) => {
                maker.inputs.iter().find_map(|id| links.maker(*id).filter(|(at, _)| product(links, *at).is_some()))?.0
            }
            _ => made,
        };
        let (up, up_x, w_up, up_ids) = product(links, first)?;
        let upper = Biased::find(links, first, ids);
        let same = (up_x, up_ids, up.rows) == (x, ids, gate.rows) && upper.out == *b;
        if !same || gated.bias.is_some() != upper.bias.is_some() || links.tensor(x).shape.rank() != 2 {
            return None;
        }
        Some(Found {
            form: ExpertsGlu { norm: None, gate, up, bias: gated.bias.is_some(), kind: *kind },
            nodes: [&gated.nodes[..], &upper.nodes, &[unit]].concat(),
            inputs: [x, w_gate, w_up, ids].into_iter().chain(gated.bias).chain(upper.bias).collect(),
            outputs: user.outputs.clone(),
        })
    }

    /// Records it as models do.
    ///
    /// *Errors*: operands that do not fit.
    pub fn record(&self, graph: &mut Graph, operands: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        let malformed = || Error::Invalid(format!("experts_glu does not take {} operands", operands.len()));
        let o = self.operands(operands).ok_or_else(malformed)?;
        let mut x = *o.x;
        if let Some(norm) = self.norm {
            x = graph.push(norm, &[&[x], o.norm].concat())?;
        }
        let mut halves = [x; 2];
        for (i, op) in [self.gate, self.up].into_iter().enumerate() {
            let y = graph.push(op, &[x, *o.weights[i], *o.ids])?;
            halves[i] = add_bias(graph, y, o.biases.map(|biases| *biases[i]), *o.ids)?;
        }
        Ok(vec![graph.push(Glu { kind: self.kind }, &halves)?])
    }
}

/// A product by id: the operator, x, the weights and the ids.
pub(super) fn product(links: &Links<'_>, at: usize) -> Option<(MatMulId, TensorId, TensorId, TensorId)> {
    let node = links.node(at);
    match (&node.op, node.inputs.as_slice()) {
        (Op::MatMulId(op), [x, w, ids]) => Some((*op, *x, *w, *ids)),
        _ => None,
    }
}

/// Adds to the results of experts the biases that they have.
pub(super) fn add_bias(
    graph: &mut Graph,
    y: TensorId,
    bias: Option<TensorId>,
    ids: TensorId,
) -> Result<TensorId, Error> {
    let Some(bias) = bias else { return Ok(y) };
    let rows = graph.push(GetRows { index: Index::Ids }, &[bias, ids])?;
    graph.push(Binary { kind: BinaryKind::Add }, &[y, rows])
}

/// A product by id, and the bias that is added to it.
pub(super) struct Biased {
    pub nodes: Vec<usize>,
    pub bias: Option<TensorId>,
    pub out: TensorId,
}

impl Biased {
    /// The one that begins at a product by id.
    pub(super) fn find(links: &Links<'_>, at: usize, ids: TensorId) -> Biased {
        let plain = Biased { nodes: vec![at], bias: None, out: links.node(at).outputs[0] };
        let bias = || {
            let (op, _, w, _) = product(links, at)?;
            let experts = op.experts(links.tensor(w).shape.rows());
            let (sum, rows, out) = links.sum(plain.out)?;
            let (looked_up, maker) = links.only_for_one(rows)?;
            match (&maker.op, maker.inputs.as_slice()) {
                (Op::GetRows(GetRows { index: Index::Ids }), [bias, by]) => {
                    let table = links.tensor(*bias);
                    let fits = table.dtype == DType::F32 && table.shape.dims().eq([experts, op.rows]) && *by == ids;
                    fits.then(|| Biased { nodes: vec![at, looked_up, sum], bias: Some(*bias), out })
                }
                _ => None,
            }
        };
        bias().unwrap_or(plain)
    }
}
