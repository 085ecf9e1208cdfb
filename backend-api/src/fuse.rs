//! Fusion and expansion: a graph of primitives becomes the graph that one backend runs best.
//!
//! `PATTERNS` is a short table. A pattern looks at one node and its neighbours and proposes a fused operator in place
//! of several nodes; it is taken only where the backend says that it [supports](Backend::supports) it. Conversely
//! `expand` gives the primitives of each fused operator, for backends that lack it.

use crate::backend::Backend;
use crate::error::{Error, Unsupported};
use crate::graph::{Graph, Node, TensorId};
use crate::op::{
    Activation, Append, ArgMax, ArgMaxAppend, At, Attention, AttentionLinear, Binary, BinaryKind, Embed, GetRows, Glu,
    Index, Linear, LinearQkv, MatMul, Op, Output, Permute, QkvAppend, Rope, SelfAttention, Slice, Softmax, Unary,
};
use crate::tensor::{DType, Kind, Shape, Tensor};

/// Fuses what the backend accepts, expands what it refuses.
///
/// *Errors*: operators that cannot be run in any form, all of them.
pub fn prepare(graph: &Graph, backend: &dyn Backend) -> Result<Graph, Error> {
    let accept = |op: &Op, inputs: &[&Tensor]| {
        let outputs = results(op, inputs).map_err(|reason| Unsupported { op: op.name().into(), reason })?;
        backend.supports(op, inputs, &outputs.iter().collect::<Vec<_>>())
    };
    legalize(&fuse(graph, &|op, inputs| accept(op, inputs).is_ok()), &accept)
}

/// Applies `PATTERNS` wherever `accept` takes the fused operator.
pub fn fuse(graph: &Graph, accept: &dyn Fn(&Op, &[&Tensor]) -> bool) -> Graph {
    let mut draft = Draft::new(graph);
    for pattern in PATTERNS {
        for at in 0..draft.nodes.len() {
            if draft.nodes[at].is_none() {
                continue;
            }
            for fusion in pattern(&draft, at) {
                let operands: Vec<&Tensor> = fusion.node.inputs.iter().map(|id| graph.tensor(*id)).collect();
                if accept(&fusion.node.op, &operands) && draft.apply(fusion) {
                    break;
                }
            }
        }
    }
    draft.finish()
}

/// Whether an operator can be run on these operands, or why not.
type Accept<'a> = dyn Fn(&Op, &[&Tensor]) -> Result<(), Unsupported> + 'a;

/// Adds an operator to a graph, in whatever form is accepted.
type Push<'a> = dyn FnMut(&mut Graph, Op, &[TensorId]) -> Result<Vec<TensorId>, Error> + 'a;

/// Rebuilds a graph, expanding every operator that `accept` refuses.
fn legalize(graph: &Graph, accept: &Accept<'_>) -> Result<Graph, Error> {
    let mut rebuild = Rebuild::new(graph)?;
    let mut refused = Vec::new();
    for node in graph.nodes() {
        let inputs = rebuild.mapped(&node.inputs);
        let outputs = push_legal(&mut rebuild.graph, node.op.clone(), &inputs, accept, &mut refused)?;
        rebuild.bind(graph, node, &outputs)?;
    }
    refused.dedup();
    if refused.is_empty() { Ok(rebuild.graph) } else { Err(Error::Unsupported(refused)) }
}

/// Replaces every fused operator by its primitives.
///
/// *Errors*: none for graphs that were built by [`Graph::push`].
pub fn expand_all(graph: &Graph) -> Result<Graph, Error> {
    let refuse = |op: &Op, _: &[&Tensor]| {
        if is_fused(op) { Err(Unsupported { op: op.name().into(), reason: "expanded".into() }) } else { Ok(()) }
    };
    legalize(graph, &refuse)
}

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

fn push_legal(
    graph: &mut Graph,
    op: Op,
    inputs: &[TensorId],
    accept: &Accept<'_>,
    refused: &mut Vec<Unsupported>,
) -> Result<Vec<TensorId>, Error> {
    let operands: Vec<&Tensor> = inputs.iter().map(|id| graph.tensor(*id)).collect();
    let verdict = accept(&op, &operands);
    if verdict.is_err() && is_fused(&op) {
        return expand(graph, &op, inputs, &mut |graph, op, inputs| push_legal(graph, op, inputs, accept, refused));
    }
    refused.extend(verdict.err());
    graph.push_multi(op, inputs)
}

/// Pushes primitives in place of a fused operator; `push` decides on each of them.
fn expand(graph: &mut Graph, op: &Op, inputs: &[TensorId], push: &mut Push<'_>) -> Result<Vec<TensorId>, Error> {
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

/// The tensors that an operator yields.
fn results(op: &Op, inputs: &[&Tensor]) -> Result<Vec<Tensor>, String> {
    let result = |output| match output {
        Output::New(shape, dtype) => Tensor { name: op.name().into(), shape, dtype, kind: Kind::Temporary },
        Output::Continues(operand) => Tensor::clone(inputs[operand]),
    };
    Ok(op.infer(inputs)?.into_iter().map(result).collect())
}

/// Some nodes that one node can replace.
struct Fusion {
    /// The nodes it replaces, by index.
    covers: Vec<usize>,
    /// The fused node; its results are tensors of the nodes it replaces.
    node: Node,
}

/// A pattern: given a node by index, the fusions that begin there, the largest first.
type Pattern = fn(&Draft<'_>, usize) -> Vec<Fusion>;

/// The patterns, in the order in which they are tried.
const PATTERNS: &[Pattern] = &[qkv_append, linear, self_attention, embed, argmax_append, linear_qkv, attention_linear];

/// A graph whose nodes are being replaced.
struct Draft<'a> {
    graph: &'a Graph,
    nodes: Vec<Option<Node>>,
}

impl<'a> Draft<'a> {
    fn new(graph: &'a Graph) -> Draft<'a> {
        Draft { graph, nodes: graph.nodes().iter().cloned().map(Some).collect() }
    }

    fn node(&self, at: usize) -> Option<&Node> {
        self.nodes.get(at)?.as_ref()
    }

    fn users(&self, id: TensorId) -> Vec<usize> {
        let uses = |node: &Option<Node>| node.as_ref().is_some_and(|n| n.inputs.contains(&id));
        (0..self.nodes.len()).filter(|at| uses(&self.nodes[*at])).collect()
    }

    fn producer(&self, id: TensorId) -> Option<(usize, &Node)> {
        self.nodes
            .iter()
            .enumerate()
            .find_map(|(at, n)| n.as_ref().filter(|n| n.outputs.contains(&id)).map(|n| (at, n)))
    }

    /// The only node that uses a temporary.
    fn only_user(&self, id: TensorId) -> Option<(usize, &Node)> {
        let users = self.users(id);
        let [at] = users.as_slice() else { return None };
        let node = self.node(*at)?;
        let once = node.inputs.iter().filter(|i| **i == id).count() == 1;
        (once && self.graph.tensor(id).kind == Kind::Temporary).then_some((*at, node))
    }

    /// Puts the fused node where the last of the replaced ones stood, if everything that uses its results comes later.
    fn apply(&mut self, fusion: Fusion) -> bool {
        let Some(&last) = fusion.covers.iter().max() else { return false };
        let early = |id: &TensorId| self.users(*id).iter().any(|at| *at <= last && !fusion.covers.contains(at));
        if fusion.node.outputs.iter().any(early) {
            return false;
        }
        for at in &fusion.covers {
            self.nodes[*at] = None;
        }
        self.nodes[last] = Some(fusion.node);
        true
    }

    /// The graph of what is left, without nodes whose results nobody needs.
    fn finish(mut self) -> Graph {
        for at in (0..self.nodes.len()).rev() {
            let needed = |id: &TensorId| self.graph.tensor(*id).kind != Kind::Temporary || !self.users(*id).is_empty();
            if self.node(at).is_some_and(|n| !n.outputs.iter().any(needed)) {
                self.nodes[at] = None;
            }
        }
        let rebuilt = Rebuild::new(self.graph).and_then(|mut rebuild| {
            for node in self.nodes.iter().flatten() {
                let inputs = rebuild.mapped(&node.inputs);
                let outputs = rebuild.graph.push_multi(node.op.clone(), &inputs)?;
                rebuild.bind(self.graph, node, &outputs)?;
            }
            Ok(rebuild.graph)
        });
        // A fused node was accepted by shape inference, so rebuilding cannot fail; if it did, unfused is still right.
        rebuilt.unwrap_or_else(|_| self.graph.clone())
    }
}

/// A copy of a graph under construction.
struct Rebuild {
    graph: Graph,
    map: Vec<Option<TensorId>>,
}

impl Rebuild {
    fn new(old: &Graph) -> Result<Rebuild, Error> {
        let mut rebuild = Rebuild { graph: Graph::new(), map: vec![None; old.tensors().count()] };
        for (id, tensor) in old.externals().filter(|(_, t)| t.kind != Kind::Output) {
            let dims: Vec<usize> = tensor.shape.dims().collect();
            let new = rebuild.graph.external(tensor.kind, tensor.name.clone(), &dims, tensor.dtype)?;
            rebuild.map[id.index()] = Some(new);
        }
        Ok(rebuild)
    }

    /// The new ids of tensors that were made before; graphs are in order, so all were.
    fn mapped(&self, ids: &[TensorId]) -> Vec<TensorId> {
        ids.iter().filter_map(|id| self.map[id.index()]).collect()
    }

    fn bind(&mut self, old: &Graph, node: &Node, outputs: &[TensorId]) -> Result<(), Error> {
        for (from, to) in node.outputs.iter().zip(outputs) {
            self.map[from.index()] = Some(*to);
            let tensor = old.tensor(*from);
            if tensor.kind == Kind::Output {
                self.graph.output(*to, tensor.name.clone())?;
            }
        }
        Ok(())
    }
}

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
fn glu_of_halves(draft: &Draft<'_>, id: TensorId) -> Option<(Vec<usize>, crate::op::GluKind, TensorId)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fused_operator_expands_and_fuses_back() {
        let mut seen = 0;
        for case in Op::all_cases() {
            let [node] = case.graph.nodes() else { panic!("cases have one node") };
            // Attention is what models record; nothing fuses to it.
            if !is_fused(&node.op) || matches!(node.op, Op::Attention(_)) {
                continue;
            }
            let primitive = |op: &Op| !is_fused(op) || matches!(op, Op::Attention(_));
            let refuse = |op: &Op, _: &[&Tensor]| match primitive(op) {
                true => Ok(()),
                false => Err(Unsupported { op: op.name().into(), reason: "expanded".into() }),
            };
            let expanded = legalize(&case.graph, &refuse).unwrap();
            assert!(expanded.nodes().iter().all(|n| primitive(&n.op)), "{}", case.name);
            let fused = fuse(&expanded, &|_, _| true);
            let [again] = fused.nodes() else {
                panic!("{}: {} nodes are left\n{fused}", case.name, fused.nodes().len())
            };
            // Without rope the split into heads is a free choice.
            let no_rope = |qkv: &QkvAppend| qkv.rope.is_none();
            let free = match &node.op {
                Op::QkvAppend(qkv) => no_rope(qkv),
                Op::LinearQkv(fused) => no_rope(&fused.qkv),
                _ => false,
            };
            if !free {
                assert_eq!(again.op, node.op, "{}", case.name);
            }
            let names = |g: &Graph| g.externals().map(|(_, t)| (t.name.clone(), t.shape)).collect::<Vec<_>>();
            assert_eq!(names(&fused), names(&case.graph), "{}", case.name);
            seen += 1;
        }
        assert!(seen > 60, "only {seen} fused cases");
    }

    #[test]
    fn refused_fusions_leave_the_graph_as_it_was() {
        for case in Op::all_cases() {
            let expanded = expand_all(&case.graph).unwrap();
            assert_eq!(fuse(&expanded, &|_, _| false).to_string(), expanded.to_string());
        }
    }
}
