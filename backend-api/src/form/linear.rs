//! `linear`: norm, matmul, bias, activation and residual in one.
//!
//! *Operands*: x `[m, k]`; with `norm` gamma (and beta) `[k]`; w `[n, k]` packed; with `bias` `[n]`; with `residual`
//! `[m, out]`. *Results*: `[m, out]`: `act(norm(x) * w^T + bias) + residual`, where out is n, or n / 2 for a GLU, whose
//! gate is the first half of the rows of w and whose up part is the second.

use super::found::Found;
use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::links::Links;
use crate::op::{Binary, BinaryKind, Glu, GluKind, MatMul, Norm, Op, Slice, Unary, UnaryKind};
use crate::order::sort_by_key;
use crate::tensor::{DType, Kind};

/// Activation after the matmul.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activation {
    /// Nothing.
    None,
    /// An elementwise function.
    Unary(UnaryKind),
    /// A gated linear unit of the two halves of the columns.
    Glu(GluKind),
}

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linear {
    /// A norm of x before the matmul.
    pub norm: Option<Norm>,
    /// Whether a bias is added.
    pub bias: bool,
    /// Activation after the matmul.
    pub activation: Activation,
    /// Whether a residual is added at the end.
    pub residual: bool,
}

/// The operands of a [`Linear`] by name.
#[derive(Debug, Clone, Copy)]
pub struct LinearOperands<'a, T> {
    /// The input.
    pub x: &'a T,
    /// Gamma, then beta for layer norm; empty without a norm.
    pub norm: &'a [T],
    /// The weight matrix.
    pub w: &'a T,
    /// The bias.
    pub bias: Option<&'a T>,
    /// The residual.
    pub residual: Option<&'a T>,
}

impl Linear {
    /// A matmul and nothing else.
    pub const PLAIN: Linear = Linear { norm: None, bias: false, activation: Activation::None, residual: false };

    /// Names the operands in a list; `None` if their number does not fit.
    pub fn operands<'a, T>(&self, list: &'a [T]) -> Option<LinearOperands<'a, T>> {
        let (x, rest) = list.split_first()?;
        let (norm, rest) = rest.split_at_checked(self.norm.map_or(0, |n| n.kind.params()))?;
        let (w, rest) = rest.split_first()?;
        let (bias, rest) = rest.split_at_checked(usize::from(self.bias))?;
        let (residual, rest) = rest.split_at_checked(usize::from(self.residual))?;
        rest.is_empty().then_some(LinearOperands { x, norm, w, bias: bias.first(), residual: residual.first() })
    }

    /// The columns of the result for `n` rows of weights.
    pub fn out_cols(&self, n: usize) -> usize {
        if matches!(self.activation, Activation::Glu(_)) { n / 2 } else { n }
    }
}

impl Linear {
    /// The linears that begin at a matmul, the largest first: every prefix of the longest chain that follows it, each with
    /// the norm before it and without.
    pub fn find(links: &Links<'_>, at: usize) -> Vec<Found<Linear>> {
        let node = links.node(at);
        let (Op::MatMul(_), [x, w]) = (&node.op, node.inputs.as_slice()) else { return Vec::new() };
        if !matches!(links.tensor(*w).dtype, DType::Packed(_)) || links.tensor(*x).shape.rank() != 2 {
            return Vec::new();
        }
        let rows = links.tensor(*w).shape.dim(0);
        let mut chain = Chain { op: Linear::PLAIN, nodes: vec![at], bias: None, residual: None, out: node.outputs[0] };
        let mut stages = vec![chain.clone()];
        if let Some((at, other, out)) = links.sum(chain.out)
            && (links.tensor(other).shape.rank(), links.tensor(other).shape.len()) == (1, rows)
        {
            chain.op.bias = true;
            chain.bias = Some(other);
            chain.grow(&[at], out, &mut stages);
        }
        if let Some((at, user)) = links.only_user(chain.out)
            && let Op::Unary(Unary { kind }) = user.op
        {
            chain.op.activation = Activation::Unary(kind);
            chain.grow(&[at], user.outputs[0], &mut stages);
        } else if let Some((nodes, kind, out)) = glu_of_halves(links, chain.out) {
            chain.op.activation = Activation::Glu(kind);
            chain.grow(&nodes, out, &mut stages);
        }
        if let Some((at, other, out)) = links.sum(chain.out)
            && links.tensor(other).shape == links.tensor(chain.out).shape
        {
            chain.op.residual = true;
            chain.residual = Some(other);
            chain.grow(&[at], out, &mut stages);
        }
        let norm = links.maker(*x).and_then(|(_, maker)| match maker.op {
            Op::Norm(norm) if norm.heads == 1 && norm.kind.by_mean() => Some((norm, maker.inputs.as_slice())),
            _ => None,
        });
        let found = |chain: &Chain, norm: Option<Norm>, front: &[TensorId]| Found {
            form: Linear { norm, ..chain.op },
            nodes: chain.nodes.clone(),
            inputs: front.iter().copied().chain([*w]).chain(chain.bias).chain(chain.residual).collect(),
            outputs: vec![chain.out],
        };
        let both = |chain: &Chain| {
            let normed = norm.map(|(norm, operands)| found(chain, Some(norm), operands));
            normed.into_iter().chain([found(chain, None, &[*x])]).collect::<Vec<_>>()
        };
        stages.iter().rev().flat_map(both).collect()
    }

    /// Records it as models do.
    ///
    /// *Errors*: operands that do not fit.
    pub fn record(&self, graph: &mut Graph, operands: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        let malformed = || Error::Invalid(format!("linear does not take {} operands", operands.len()));
        let o = self.operands(operands).ok_or_else(malformed)?;
        let add = Binary { kind: BinaryKind::Add };
        let mut x = *o.x;
        if let Some(norm) = self.norm {
            x = graph.push(norm, &[&[x], o.norm].concat())?;
        }
        x = graph.push(MatMul, &[x, *o.w])?;
        if let Some(bias) = o.bias {
            x = graph.push(add, &[x, *bias])?;
        }
        match self.activation {
            Activation::None => {}
            Activation::Unary(kind) => x = graph.push(Unary { kind }, &[x])?,
            Activation::Glu(kind) => {
                let len = graph.tensor(x).shape.cols() / 2;
                let gate = graph.push(Slice { start: 0, len }, &[x])?;
                let up = graph.push(Slice { start: len, len }, &[x])?;
                x = graph.push(Glu { kind }, &[gate, up])?;
            }
        }
        if let Some(residual) = o.residual {
            x = graph.push(add, &[x, *residual])?;
        }
        Ok(vec![x])
    }
}

/// A matmul and what follows it, so far.
#[derive(Clone)]
struct Chain {
    op: Linear,
    nodes: Vec<usize>,
    bias: Option<TensorId>,
    residual: Option<TensorId>,
    out: TensorId,
}

impl Chain {
    fn grow(&mut self, nodes: &[usize], out: TensorId, stages: &mut Vec<Chain>) {
        self.nodes.extend(nodes);
        self.out = out;
        stages.push(self.clone());
    }
}

/// The nodes, kind and result of a GLU whose gate and up parts are the halves of a tensor.
fn glu_of_halves(links: &Links<'_>, id: TensorId) -> Option<(Vec<usize>, GluKind, TensorId)> {
    let slices = slices_of(links, id)?;
    let [(a, gate), (b, up)] = *slices.as_slice() else { return None };
    let (at, user) = links.only_user(gate)?;
    let Op::Glu(Glu { kind }) = user.op else { return None };
    // Epilogues have the product alone.
    let fits = kind.limit().is_none() && user.inputs == [gate, up] && links.only_user(up)?.0 == at;
    (fits && links.tensor(gate).shape == links.tensor(up).shape).then(|| (vec![a, b, at], kind, user.outputs[0]))
}

/// The slices that together are the only users of a tensor and cover its columns in order: (node, result) each.
pub(super) fn slices_of(links: &Links<'_>, id: TensorId) -> Option<Vec<(usize, TensorId)>> {
    if links.tensor(id).kind == Kind::Output {
        return None;
    }
    let mut slices = Vec::new();
    for &at in links.users(id) {
        let node = links.node(at);
        let Op::Slice(slice) = node.op else { return None };
        slices.push((slice.start, slice.len, at, node.outputs[0]));
    }
    sort_by_key(&mut slices, |(start, ..)| *start as u64);
    let mut end = 0;
    for (start, len, ..) in &slices {
        if *start != end {
            return None;
        }
        end += len;
    }
    (end == links.tensor(id).shape.cols()).then(|| slices.into_iter().map(|(_, _, at, out)| (at, out)).collect())
}
