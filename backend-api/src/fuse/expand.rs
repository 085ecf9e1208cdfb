//! The primitives of each fused operator, for backends that lack it.

use super::Push;
use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::op::{
    Activation, Append, ArgMax, At, Attention, Binary, BinaryKind, Embed, GetRows, Glu, Index, MatMul, Op, Permute,
    Rope, SelfAttention, Slice, Softmax, Unary,
};
use crate::tensor::Shape;

/// Whether an operator has an expansion.
pub fn is_fused(op: &Op) -> bool {
    matches!(
        op,
        Op::Linear(_)
            | Op::QkvAppend(_)
            | Op::Attention(_)
            | Op::Embed(_)
            | Op::ArgMaxAppend(_)
            | Op::LinearQkv(_)
            | Op::AttentionLinear(_)
            | Op::SelfAttention(_)
    )
}

/// Pushes primitives in place of a fused operator; `push` decides on each of them.
pub(super) fn expand(
    graph: &mut Graph,
    op: &Op,
    inputs: &[TensorId],
    push: &mut Push<'_>,
) -> Result<Vec<TensorId>, Error> {
    let mut one = |graph: &mut Graph, op: Op, inputs: &[TensorId]| push(graph, op, inputs).map(|ids| ids[0]);
    let add = Op::from(Binary { kind: BinaryKind::Add });
    let malformed = || Error::Invalid(format!("{} does not take {} operands", op.name(), inputs.len()));
    match op {
        Op::Linear(linear) => {
            let o = linear.operands(inputs).ok_or_else(malformed)?;
            let mut x = *o.x;
            if let Some(norm) = linear.norm {
                let operands: Vec<TensorId> = std::iter::once(x).chain(o.norm.iter().copied()).collect();
                x = one(graph, norm.into(), &operands)?;
            }
            x = one(graph, MatMul.into(), &[x, *o.w])?;
            if let Some(bias) = o.bias {
                x = one(graph, add.clone(), &[x, *bias])?;
            }
            match linear.activation {
                Activation::None => {}
                Activation::Unary(kind) => x = one(graph, Unary { kind }.into(), &[x])?,
                Activation::Glu(kind) => {
                    let len = graph.tensor(x).shape.cols() / 2;
                    let gate = one(graph, Slice { start: 0, len }.into(), &[x])?;
                    let up = one(graph, Slice { start: len, len }.into(), &[x])?;
                    x = one(graph, Glu { kind }.into(), &[gate, up])?;
                }
            }
            if let Some(residual) = o.residual {
                x = one(graph, add, &[x, *residual])?;
            }
            Ok(vec![x])
        }
        Op::QkvAppend(qkv) => {
            let (q_len, kv_len) = (qkv.n_head * qkv.head_dim, qkv.n_head_kv * qkv.head_dim);
            let [x, .., k_cache, v_cache] = inputs else { return Err(malformed()) };
            let mut q = one(graph, Slice { start: 0, len: q_len }.into(), &[*x])?;
            let mut k = one(graph, Slice { start: q_len, len: kv_len }.into(), &[*x])?;
            let v = one(graph, Slice { start: q_len + kv_len, len: kv_len }.into(), &[*x])?;
            if let Some((n_dims, mode)) = qkv.rope {
                q = one(graph, Rope { n_head: qkv.n_head, n_dims, mode }.into(), &[q, inputs[1]])?;
                k = one(graph, Rope { n_head: qkv.n_head_kv, n_dims, mode }.into(), &[k, inputs[1]])?;
            }
            let append = Op::from(Append { at: At::Position });
            let k_cache = one(graph, append.clone(), &[*k_cache, k])?;
            let v_cache = one(graph, append, &[*v_cache, v])?;
            Ok(vec![q, k_cache, v_cache])
        }
        Op::Attention(attention) => {
            let Attention { n_head: h, n_head_kv: g, scale, softcap, masking } = *attention;
            let dims = |graph: &Graph, id: TensorId| (graph.tensor(id).shape.dim(0), graph.tensor(id).shape.cols());
            let mut permute = |graph: &mut Graph, id: TensorId, view: &[usize], perm: &[usize]| {
                let op = Permute { view: Shape::new(view)?, perm: perm.to_vec() };
                one(graph, op.into(), &[id])
            };
            let (m, width) = dims(graph, inputs[0]);
            let d = width / h;
            let (n, v_width) = dims(graph, inputs[2]);
            let dv = v_width / g;
            let q = permute(graph, inputs[0], &[m, h, d], &[1, 0, 2])?;
            let k = permute(graph, inputs[1], &[n, g, d], &[1, 0, 2])?;
            let v = permute(graph, inputs[2], &[n, g, dv], &[1, 2, 0])?;
            let scores = push(graph, MatMul.into(), &[q, k])?[0];
            let operands: Vec<TensorId> = std::iter::once(scores).chain(inputs.get(3).copied()).collect();
            let weights = push(graph, Softmax { scale, softcap, masking }.into(), &operands)?[0];
            let mixed = push(graph, MatMul.into(), &[weights, v])?[0];
            let merge = Permute { view: Shape::new(&[h, m, dv])?, perm: vec![1, 0, 2] };
            let merged = push(graph, merge.into(), &[mixed])?[0];
            let flat = Permute { view: Shape::new(&[m, h * dv])?, perm: vec![0, 1] };
            push(graph, flat.into(), &[merged])
        }
        Op::SelfAttention(whole) => {
            let (front, rest) = whole.operands(inputs).ok_or_else(malformed)?;
            if let Some(linear) = whole.project {
                let projected = one(graph, linear.into(), front)?;
                let operands: Vec<TensorId> = std::iter::once(projected).chain(rest.iter().copied()).collect();
                return push(graph, SelfAttention { project: None, ..*whole }.into(), &operands);
            }
            let parts = push(graph, whole.qkv.into(), inputs)?;
            let heads = push(graph, whole.attention.into(), &parts)?;
            Ok(vec![heads[0], parts[1], parts[2]])
        }
        Op::Embed(Embed { rows }) => {
            let tokens = one(graph, GetRows { index: Index::Tokens { rows: *rows } }.into(), &inputs[..2])?;
            let positions = one(graph, GetRows { index: Index::Positions { rows: *rows } }.into(), &inputs[2..])?;
            Ok(vec![one(graph, add, &[tokens, positions])?])
        }
        Op::ArgMaxAppend(_) => {
            let id = one(graph, ArgMax.into(), &inputs[1..])?;
            Ok(vec![one(graph, Append { at: At::Next }.into(), &[inputs[0], id])?])
        }
        Op::LinearQkv(fused) => {
            let (head, tail) = inputs.split_at_checked(fused.linear_operands()).ok_or_else(malformed)?;
            let between = one(graph, fused.linear.into(), head)?;
            push(graph, fused.qkv.into(), &[&[between], tail].concat())
        }
        Op::AttentionLinear(fused) => {
            let (head, tail) = inputs.split_at_checked(fused.attention_operands()).ok_or_else(malformed)?;
            let between = one(graph, fused.attention.into(), head)?;
            push(graph, fused.linear.into(), &[&[between], tail].concat())
        }
        _ => Err(Error::Invalid(format!("{} has no expansion", op.name()))),
    }
}
