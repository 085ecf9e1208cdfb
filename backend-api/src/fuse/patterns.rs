//! What several nodes may become: a pattern looks at one node and its neighbours and proposes one operator for them.

use super::{Draft, Fusion, Pattern};
use crate::graph::{Node, TensorId};
use crate::op::{
    Activation, Append, ArgMaxAppend, At, Attention, AttentionLinear, Binary, BinaryKind, Embed, Glu, GluKind, Index,
    Linear, LinearQkv, Op, QkvAppend, SelfAttention, Slice, Unary,
};
use crate::tensor::{DType, Kind};

/// The patterns, in the order in which they are tried.
pub(super) const PATTERNS: &[Pattern] =
    &[qkv_append, linear, self_attention, embed, argmax_append, linear_qkv, attention_linear];

/// norm, matmul, bias, activation, residual => linear.
fn linear(draft: &Draft<'_>, at: usize) -> Vec<Fusion> {
    let Some(node) = draft.node(at) else { return Vec::new() };
    let graph = draft.graph;
    let (Op::MatMul(_), [x, w]) = (&node.op, node.inputs.as_slice()) else { return Vec::new() };
    let x_tensor = graph.tensor(*x);
    if !matches!(graph.tensor(*w).dtype, DType::Packed(_)) || x_tensor.shape.rank() != 2 {
        return Vec::new();
    }
    // The longest chain after the matmul; every prefix of it is a candidate.
    let (mut op, mut out, mut covers) = (Linear::PLAIN, node.outputs[0], vec![at]);
    let (mut bias, mut residual) = (None, None);
    let mut stages = vec![(op, out, covers.clone(), bias, residual)];
    let sum = |id: TensorId| {
        let (at, user) = draft.only_user(id)?;
        let (Op::Binary(Binary { kind: BinaryKind::Add }), [a, b]) = (&user.op, user.inputs.as_slice()) else {
            return None;
        };
        Some((at, if *a == id { *b } else { *a }, user.outputs[0]))
    };
    if let Some((at, other, result)) = sum(out) {
        let tensor = graph.tensor(other);
        if tensor.shape.rank() == 1 && tensor.shape.len() == graph.tensor(*w).shape.dim(0) {
            (op.bias, bias, out) = (true, Some(other), result);
            covers.push(at);
            stages.push((op, out, covers.clone(), bias, residual));
        }
    }
    if let Some((at, user)) = draft.only_user(out)
        && let Op::Unary(Unary { kind }) = user.op
    {
        (op.activation, out) = (Activation::Unary(kind), user.outputs[0]);
        covers.push(at);
        stages.push((op, out, covers.clone(), bias, residual));
    } else if let Some((nodes, kind, result)) = glu_of_halves(draft, out) {
        (op.activation, out) = (Activation::Glu(kind), result);
        covers.extend(nodes);
        stages.push((op, out, covers.clone(), bias, residual));
    }
    if let Some((at, other, result)) = sum(out)
        && graph.tensor(other).shape == graph.tensor(out).shape
    {
        (op.residual, residual, out) = (true, Some(other), result);
        covers.push(at);
        stages.push((op, out, covers, bias, residual));
    }
    let norm = draft.producer(*x).and_then(|(_, producer)| match producer.op {
        Op::Norm(norm) => Some((norm, producer.inputs.clone())),
        _ => None,
    });
    let mut fusions = Vec::new();
    for (op, out, covers, bias, residual) in stages.into_iter().rev() {
        let mut propose = |op: Linear, front: &[TensorId]| {
            let inputs = front.iter().copied().chain([*w]).chain(bias).chain(residual).collect();
            let node = Node { op: op.into(), inputs, outputs: vec![out] };
            fusions.push(Fusion { covers: covers.clone(), node });
        };
        if let Some((norm, operands)) = &norm {
            propose(Linear { norm: Some(*norm), ..op }, operands);
        }
        propose(op, &[*x]);
    }
    fusions
}

/// The nodes, kind and result of a GLU whose gate and up parts are the halves of a tensor.
fn glu_of_halves(draft: &Draft<'_>, id: TensorId) -> Option<(Vec<usize>, GluKind, TensorId)> {
    let width = draft.graph.tensor(id).shape.cols();
    let slices = slices_of(draft, id, 2)?;
    let [(a, gate), (b, up)] = slices.as_slice() else { return None };
    let halves = [a, b]
        .iter()
        .all(|at| matches!(draft.node(**at), Some(n) if matches!(n.op, Op::Slice(s) if s.len * 2 == width)));
    let (at, user) = draft.only_user(*gate)?;
    let (Op::Glu(Glu { kind }), [g, u]) = (&user.op, user.inputs.as_slice()) else { return None };
    let fits = halves && g == gate && u == up && draft.only_user(*up)?.0 == at;
    fits.then(|| (vec![*a, *b, at], *kind, user.outputs[0]))
}

/// The slices that together are the only users of a tensor and cover its columns in order: (node, result) each.
fn slices_of(draft: &Draft<'_>, id: TensorId, count: usize) -> Option<Vec<(usize, TensorId)>> {
    let users = draft.users(id);
    if users.len() != count || draft.graph.tensor(id).kind == Kind::Output {
        return None;
    }
    let mut slices = Vec::new();
    for at in users {
        let node = draft.node(at)?;
        let Op::Slice(slice) = node.op else { return None };
        slices.push((slice.start, slice.len, at, node.outputs[0]));
    }
    slices.sort_unstable();
    let mut end = 0;
    for (start, len, ..) in &slices {
        if *start != end {
            return None;
        }
        end += len;
    }
    Some(slices.into_iter().map(|(_, _, at, out)| (at, out)).collect())
}

/// Three slices, rope of two, append of two => qkv_append.
fn qkv_append(draft: &Draft<'_>, at: usize) -> Vec<Fusion> {
    find_qkv_append(draft, at).into_iter().collect()
}

fn find_qkv_append(draft: &Draft<'_>, at: usize) -> Option<Fusion> {
    let graph = draft.graph;
    let first = draft.node(at)?;
    let (Op::Slice(Slice { start: 0, .. }), [qkv]) = (&first.op, first.inputs.as_slice()) else { return None };
    let qkv = *qkv;
    let slices = slices_of(draft, qkv, 3)?;
    let [(q_at, mut q), (k_at, mut k), (v_at, v)] = *slices.as_slice() else { return None };
    let mut covers = vec![q_at, k_at, v_at];
    let (q_cols, kv_cols) = (graph.tensor(q).shape.cols(), graph.tensor(k).shape.cols());
    let mut table = None;
    let mut op = QkvAppend { n_head: q_cols / kv_cols.max(1), n_head_kv: 1, head_dim: kv_cols, rope: None };
    let rope_of = |id: TensorId| {
        let (at, user) = draft.only_user(id)?;
        let Op::Rope(rope) = user.op else { return None };
        Some((at, rope, user.inputs[1], user.outputs[0]))
    };
    if let Some((q_rope_at, q_rope, q_table, q_out)) = rope_of(q) {
        let (k_rope_at, k_rope, k_table, k_out) = rope_of(k)?;
        if (q_rope.n_dims, q_rope.mode, q_table) != (k_rope.n_dims, k_rope.mode, k_table) {
            return None;
        }
        op.n_head = q_rope.n_head;
        op.n_head_kv = k_rope.n_head;
        op.head_dim = q_cols / q_rope.n_head;
        op.rope = Some((q_rope.n_dims, q_rope.mode));
        table = Some(q_table);
        (q, k) = (q_out, k_out);
        covers.extend([q_rope_at, k_rope_at]);
    }
    let append_of = |id: TensorId| {
        let (at, user) = draft.only_user(id)?;
        let Op::Append(Append { at: At::Position }) = user.op else { return None };
        (user.inputs[1] == id).then(|| (at, user.inputs[0], user.outputs[0]))
    };
    let (k_append, k_cache, k_next) = append_of(k)?;
    let (v_append, v_cache, v_next) = append_of(v)?;
    covers.extend([k_append, v_append]);
    let inputs = std::iter::once(qkv).chain(table).chain([k_cache, v_cache]).collect();
    Some(Fusion { covers, node: Node { op: op.into(), inputs, outputs: vec![q, k_next, v_next] } })
}

/// qkv_append and attention, after their projection or without it => self_attention.
fn self_attention(draft: &Draft<'_>, at: usize) -> Vec<Fusion> {
    let find = || {
        let node = draft.node(at)?;
        let (Op::QkvAppend(qkv), [q, k, v]) = (&node.op, node.outputs.as_slice()) else { return None };
        let (attention_at, user) = draft.only_user(*q)?;
        let Op::Attention(attention) = user.op else { return None };
        let alone = [k, v].iter().all(|cache| draft.users(**cache) == [attention_at]);
        if !alone || user.inputs != node.outputs {
            return None;
        }
        let Attention { n_head, n_head_kv, .. } = attention;
        let mut qkv = *qkv;
        if qkv.rope.is_none() {
            // Only attention knows how such a projection splits into heads.
            let head_dim = draft.graph.tensor(*k).shape.cols() / n_head_kv;
            qkv = QkvAppend { n_head, n_head_kv, head_dim, rope: None };
        }
        let propose = |project, covers, front: &[TensorId]| {
            let inputs = front.iter().chain(&node.inputs[1..]).copied().collect();
            let op = SelfAttention { project, qkv, attention };
            Fusion { covers, node: Node { op: op.into(), inputs, outputs: vec![user.outputs[0], *k, *v] } }
        };
        let projection = node.inputs[0];
        let mut fusions = Vec::new();
        if let (Some((linear_at, producer)), Some(_)) = (draft.producer(projection), draft.only_user(projection))
            && let Op::Linear(linear) = producer.op
        {
            fusions.push(propose(Some(linear), vec![linear_at, at, attention_at], &producer.inputs));
        }
        fusions.push(propose(None, vec![at, attention_at], &[projection]));
        Some(fusions)
    };
    find().unwrap_or_default()
}

/// Token rows plus position rows => embed.
fn embed(draft: &Draft<'_>, at: usize) -> Vec<Fusion> {
    let find = || {
        let node = draft.node(at)?;
        let (Op::Binary(Binary { kind: BinaryKind::Add }), [a, b]) = (&node.op, node.inputs.as_slice()) else {
            return None;
        };
        let rows_of = |id: TensorId| {
            let (at, producer) = draft.producer(id)?;
            let Op::GetRows(get) = &producer.op else { return None };
            (draft.only_user(id).is_some()).then(|| (at, get.index, producer.inputs.clone()))
        };
        let (first, second) = (rows_of(*a)?, rows_of(*b)?);
        let (tokens, positions) =
            if matches!(first.1, Index::Tokens { .. }) { (first, second) } else { (second, first) };
        let (Index::Tokens { rows }, Index::Positions { .. }) = (tokens.1, positions.1) else { return None };
        let inputs = tokens.2.into_iter().chain(positions.2).collect();
        let node = Node { op: Embed { rows }.into(), inputs, outputs: node.outputs.clone() };
        Some(Fusion { covers: vec![at, tokens.0, positions.0], node })
    };
    find().into_iter().collect()
}

/// Argmax, append of the next token => argmax_append.
fn argmax_append(draft: &Draft<'_>, at: usize) -> Vec<Fusion> {
    let find = || {
        let node = draft.node(at)?;
        let Op::ArgMax(_) = node.op else { return None };
        let (append_at, append) = draft.only_user(node.outputs[0])?;
        let Op::Append(Append { at: At::Next }) = append.op else { return None };
        let inputs = vec![append.inputs[0], node.inputs[0]];
        let node = Node { op: ArgMaxAppend.into(), inputs, outputs: append.outputs.clone() };
        Some(Fusion { covers: vec![at, append_at], node })
    };
    find().into_iter().collect()
}

/// Linear, qkv_append => linear_qkv.
fn linear_qkv(draft: &Draft<'_>, at: usize) -> Vec<Fusion> {
    chained(draft, at, |first, second| match (first, second) {
        (Op::Linear(linear), Op::QkvAppend(qkv)) if linear.activation == Activation::None && !linear.residual => {
            Some(LinearQkv { linear: *linear, qkv: *qkv }.into())
        }
        _ => None,
    })
}

/// Attention, linear => attention_linear.
fn attention_linear(draft: &Draft<'_>, at: usize) -> Vec<Fusion> {
    chained(draft, at, |first, second| match (first, second) {
        (Op::Attention(attention), Op::Linear(linear)) if linear.norm.is_none() => {
            Some(AttentionLinear { attention: *attention, linear: *linear }.into())
        }
        _ => None,
    })
}

/// A node whose first operand nobody else uses, with the node that makes it, if `join` has an operator for both.
fn chained(draft: &Draft<'_>, at: usize, join: impl Fn(&Op, &Op) -> Option<Op>) -> Vec<Fusion> {
    let find = || {
        let second = draft.node(at)?;
        let (between, rest) = second.inputs.split_first()?;
        let (first_at, first) = draft.producer(*between)?;
        draft.only_user(*between)?;
        let inputs = first.inputs.iter().chain(rest).copied().collect();
        let node = Node { op: join(&first.op, &second.op)?, inputs, outputs: second.outputs.clone() };
        Some(Fusion { covers: vec![first_at, at], node })
    };
    find().into_iter().collect()
}
