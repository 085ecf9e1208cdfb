//! Fusion and expansion: a graph of primitives becomes the graph that one backend runs best.
//!
//! `patterns` has a short table. A pattern looks at one node and its neighbours and proposes a fused operator in place
//! of several nodes; it is taken only where the backend says that it [supports](Backend::supports) it. Conversely
//! `expand` gives the primitives of each fused operator, for backends that lack it.

mod expand;
mod patterns;

use crate::backend::Backend;
use crate::error::{Error, Unsupported};
use crate::graph::{Graph, Node, TensorId};
use crate::op::{Op, Output};
use crate::tensor::{Kind, Tensor};
use expand::expand;
use patterns::PATTERNS;

pub use expand::is_fused;

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

/// Replaces every fused operator by its primitives.
///
/// *Errors*: none for graphs that were built by [`Graph::push`].
pub fn expand_all(graph: &Graph) -> Result<Graph, Error> {
    let refuse = |op: &Op, _: &[&Tensor]| {
        if is_fused(op) { Err(Unsupported { op: op.name().into(), reason: "expanded".into() }) } else { Ok(()) }
    };
    legalize(graph, &refuse)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::QkvAppend;

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
