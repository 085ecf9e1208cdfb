//! `conv`: a short convolution of some columns, between gates, with bias and activation.
//!
//! *Operands*: the state of the convolution; what its columns are read of, each once; its kernel; with `bias` a vector
//! `[d]`. *Results*: `act(conv(x * gate) + bias) * gate_out`, and the state.

use super::columns::{Columns, Finding};
use super::found::Found;
use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::links::Links;
use crate::op::{Binary, BinaryKind, Op, ShortConv, Unary, UnaryKind};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conv {
    /// Input of the convolution.
    pub x: Columns,
    /// Factor of the input, if it is gated.
    pub gate: Option<Columns>,
    /// Whether a bias is added.
    pub bias: bool,
    /// Activation after the convolution.
    pub activation: Option<UnaryKind>,
    /// Factor of the result, if it is gated.
    pub gate_out: Option<Columns>,
}

impl Conv {
    /// The convolution of all of operand 1, as the operator has it.
    pub fn plain(channels: usize) -> Conv {
        Conv { x: Columns::all(1, channels), gate: None, bias: false, activation: None, gate_out: None }
    }

    /// The places of the kernel and of the bias among so many operands.
    pub fn places(&self, operands: usize) -> (usize, Option<usize>) {
        let bias = self.bias.then(|| operands - 1);
        (operands - 1 - usize::from(self.bias), bias)
    }

    /// The one around a convolution, if there is anything.
    pub fn find(links: &Links<'_>, at: usize) -> Option<Found<Conv>> {
        let node = links.node(at);
        let (Op::ShortConv(_), [state, x, kernel]) = (&node.op, node.inputs.as_slice()) else { return None };
        let mut finding = Finding { links, nodes: vec![at], inputs: vec![*state] };
        let product = links.only_for_one(*x).and_then(|(at, maker)| {
            let (Op::Binary(op), [a, b]) = (&maker.op, maker.inputs.as_slice()) else { return None };
            let alike = links.tensor(*a).shape == links.tensor(*b).shape;
            (op.kind == BinaryKind::Mul && alike && a != b).then_some((at, *a, *b))
        });
        let (gate, x) = match product {
            Some((at, a, b)) => {
                finding.nodes.push(at);
                (Some(finding.columns(a)), finding.columns(b))
            }
            None => (None, finding.columns(*x)),
        };
        let mut form = Conv { gate, x, ..Conv::plain(0) };
        let (mut out, mut bias) = (node.outputs[0], None);
        if let Some((at, other, sum)) = links.sum(out)
            && links.tensor(other).shape.dims().eq([x.len])
        {
            (form.bias, bias, out) = (true, Some(other), sum);
            finding.nodes.push(at);
        }
        if let Some((at, user)) = links.only_user(out)
            && let Op::Unary(Unary { kind }) = user.op
        {
            (form.activation, out) = (Some(kind), user.outputs[0]);
            finding.nodes.push(at);
        }
        if let Some((at, user)) = links.only_user(out)
            && let (Op::Binary(Binary { kind: BinaryKind::Mul }), [a, b]) = (&user.op, user.inputs.as_slice())
            && links.tensor(*a).shape == links.tensor(*b).shape
        {
            let other = if *a == out { *b } else { *a };
            finding.nodes.push(at);
            (form.gate_out, out) = (Some(finding.columns(other)), user.outputs[0]);
        }
        let Finding { nodes, inputs, .. } = finding;
        (nodes.len() > 1).then(|| Found {
            form,
            nodes,
            inputs: inputs.into_iter().chain([*kernel]).chain(bias).collect(),
            outputs: vec![out, node.outputs[1]],
        })
    }

    /// Records it as models do.
    ///
    /// *Errors*: operands that do not fit.
    pub fn record(&self, graph: &mut Graph, operands: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        if operands.len() < 3 + usize::from(self.bias) {
            return Err(Error::Invalid(format!("conv does not take {} operands", operands.len())));
        }
        let (kernel, bias) = self.places(operands.len());
        let mul = Binary { kind: BinaryKind::Mul };
        let gate = self.gate.map(|gate| gate.record(graph, operands)).transpose()?;
        let gate_out = self.gate_out.map(|gate| gate.record(graph, operands)).transpose()?;
        let mut x = self.x.record(graph, operands)?;
        if let Some(gate) = gate {
            x = graph.push(mul, &[gate, x])?;
        }
        let made = graph.push_multi(ShortConv.into(), &[operands[0], x, operands[kernel]])?;
        let mut y = made[0];
        if let Some(bias) = bias {
            y = graph.push(Binary { kind: BinaryKind::Add }, &[y, operands[bias]])?;
        }
        if let Some(kind) = self.activation {
            y = graph.push(Unary { kind }, &[y])?;
        }
        if let Some(gate) = gate_out {
            y = graph.push(mul, &[gate, y])?;
        }
        Ok(vec![y, made[1]])
    }
}
