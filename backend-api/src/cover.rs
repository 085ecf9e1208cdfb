//! Covering: which nodes of a graph a backend runs together.
//!
//! Each node is covered once. Matchers are tried in the backend's order at every node; what they find is taken if the
//! backend supports it and nothing of it is taken yet. What is left is covered by its primitive, or refused with the
//! backend's reason.

use crate::error::{Error, Unsupported};
use crate::form::{Cover, Form, Matcher};
use crate::graph::Graph;
use crate::links::Links;
use crate::order::sort_by_key;
use crate::tensor::Kind;

/// Covers a graph, in an order in which the covers can run.
///
/// *Errors*: nodes that cannot be run in any form, all of them.
pub fn cover(
    graph: &Graph,
    matchers: &[Matcher],
    supports: &dyn Fn(&Graph, &Cover) -> Result<(), Unsupported>,
) -> Result<Vec<Cover>, Error> {
    let links = Links::new(graph);
    let mut covers = Vec::new();
    for matcher in matchers {
        for at in 0..graph.nodes().len() {
            if links.is_taken(at) {
                continue;
            }
            let fits = |found: &Cover| {
                found.nodes.iter().all(|at| !links.is_taken(*at))
                    && runs_last(&links, found)
                    && supports(graph, found).is_ok()
            };
            if let Some(found) = matcher(&links, at).into_iter().find(fits) {
                found.nodes.iter().for_each(|at| links.take(*at));
                covers.push(found);
            }
        }
    }
    let needed = needed(&links, &covers);
    let mut refused = Vec::new();
    for (at, node) in graph.nodes().iter().enumerate().filter(|(at, _)| needed[*at]) {
        let (inputs, outputs) = (node.inputs.clone(), node.outputs.clone());
        let found = Cover { form: Form::Op(node.op.clone()), nodes: vec![at], inputs, outputs };
        match supports(graph, &found) {
            Ok(()) => covers.push(found),
            Err(why) => refused.push(why),
        }
    }
    refused.dedup();
    if !refused.is_empty() {
        return Err(Error::Unsupported(refused));
    }
    sort_by_key(&mut covers, |cover| last(cover) as u64);
    Ok(covers)
}

/// The last node of a cover, in whose place it runs.
fn last(cover: &Cover) -> usize {
    cover.nodes.iter().copied().max().unwrap_or(0)
}

/// Whether a cover can run in the place of its last node: what it makes must not be needed earlier, and states that it
/// reads must not have been written to by then.
fn runs_last(links: &Links<'_>, cover: &Cover) -> bool {
    let last = last(cover);
    let later = |at: &usize| *at > last || cover.nodes.contains(at);
    let results = cover.outputs.iter().all(|id| links.users(*id).iter().all(later));
    let writer = |id| links.graph().continued(id).and_then(|next| links.maker(next));
    results && cover.inputs.iter().all(|id| writer(*id).is_none_or(|(at, _)| later(&at)))
}

/// The nodes that are not taken and whose results somebody needs: covers, the caller, or other such nodes.
fn needed(links: &Links<'_>, covers: &[Cover]) -> Vec<bool> {
    let graph = links.graph();
    let mut wanted: Vec<bool> = graph.tensors().map(|(_, tensor)| tensor.kind != Kind::Temporary).collect();
    for id in covers.iter().flat_map(|cover| &cover.inputs) {
        wanted[id.index()] = true;
    }
    let mut needed = vec![false; graph.nodes().len()];
    for (at, node) in graph.nodes().iter().enumerate().rev() {
        if !links.is_taken(at) && node.outputs.iter().any(|id| wanted[id.index()]) {
            needed[at] = true;
            node.inputs.iter().for_each(|id| wanted[id.index()] = true);
        }
    }
    needed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases;
    use crate::op::{Append, At, Binary, BinaryKind, MatMul, Norm, NormKind};
    use crate::tensor::DType;
    use crate::{Format, TensorId};

    type Verdict = Result<(), Unsupported>;

    fn everything(_: &Graph, _: &Cover) -> Verdict {
        Ok(())
    }

    fn primitives(_: &Graph, cover: &Cover) -> Verdict {
        match &cover.form {
            Form::Op(_) => Ok(()),
            form => Err(Unsupported { op: form.name().into(), reason: "refused".into() }),
        }
    }

    #[test]
    fn every_form_is_found_in_what_models_record() {
        let mut seen = 0;
        for case in cases::all().into_iter().filter(|case| Form::NAMES.contains(&case.op)) {
            let covers = cover(&case.graph, Form::MATCHERS, &everything).unwrap();
            let [whole] = covers.as_slice() else { panic!("{} {}: {covers:#?}", case.op, case.name) };
            assert_eq!(whole.form.name(), case.op, "{}", case.name);
            let given = case.graph.externals().filter(|(_, tensor)| tensor.kind != Kind::Output).map(|(id, _)| id);
            assert!(given.eq(sorted(&whole.inputs)), "{} {}", case.op, case.name);
            seen += 1;
        }
        assert!(seen > 60, "only {seen} cases of forms");
    }

    #[test]
    fn what_is_refused_is_covered_by_primitives_in_order() {
        for case in cases::all() {
            let covers = cover(&case.graph, Form::MATCHERS, &primitives).unwrap();
            let nodes: Vec<usize> = covers.iter().flat_map(|cover| cover.nodes.clone()).collect();
            assert!(nodes.into_iter().eq(0..case.graph.nodes().len()), "{} {}", case.op, case.name);
        }
    }

    fn sorted(ids: &[TensorId]) -> Vec<TensorId> {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        // Gates and up parts may lie in one tensor.
        ids.dedup();
        ids
    }

    fn linear(graph: &mut Graph, x: TensorId, name: &str) -> TensorId {
        let w = graph.weight(name, &[32, 32], DType::Packed(Format::Q8_0)).unwrap();
        graph.push(MatMul, &[x, w]).unwrap()
    }

    #[test]
    fn a_norm_is_computed_by_each_that_needs_it_or_once_for_all() {
        let mut graph = Graph::new();
        let x = graph.input("x", &[1, 32], DType::F32).unwrap();
        let gamma = graph.weight("gamma", &[32], DType::F32).unwrap();
        let normed = graph.push(Norm { kind: NormKind::Rms, eps: 1e-5, heads: 1 }, &[x, gamma]).unwrap();
        for name in ["a", "b"] {
            let y = linear(&mut graph, normed, name);
            graph.output(y, name).unwrap();
        }
        let within = cover(&graph, Form::MATCHERS, &everything).unwrap();
        assert_eq!(within.len(), 2, "the norm has no cover of its own: {within:#?}");
        let without = |_: &Graph, cover: &Cover| match &cover.form {
            Form::Linear(linear) if linear.norm.is_some() => {
                Err(Unsupported { op: "linear".into(), reason: "no norm".into() })
            }
            _ => Ok(()),
        };
        let apart = cover(&graph, Form::MATCHERS, &without).unwrap();
        assert_eq!(apart.iter().map(|c| c.form.name()).collect::<Vec<_>>(), ["norm", "linear", "linear"]);
    }

    #[test]
    fn a_reader_of_a_state_is_not_moved_behind_its_writer() {
        // The sum that ends the chain comes after the append, but the residual is the state as it was before.
        let mut graph = Graph::new();
        let state = graph.state("s", &[4, 32], DType::F32).unwrap();
        let x = graph.input("x", &[4, 32], DType::F32).unwrap();
        let y = linear(&mut graph, x, "w");
        let sum = graph.push(Binary { kind: BinaryKind::Add }, &[y, state]).unwrap();
        let now = graph.push(Append { at: At::Position }, &[state, x]).unwrap();
        let end = graph.push(Binary { kind: BinaryKind::Add }, &[sum, now]).unwrap();
        graph.output(end, "end").unwrap();
        let covers = cover(&graph, Form::MATCHERS, &everything).unwrap();
        let names: Vec<_> = covers.iter().map(|c| c.form.name()).collect();
        assert_eq!(names, ["linear", "append", "binary"], "{covers:#?}");
    }

    #[test]
    fn refusals_are_all_listed() {
        let mut graph = Graph::new();
        let x = graph.input("x", &[2, 32], DType::F32).unwrap();
        let y = linear(&mut graph, x, "w");
        let z = graph.push(Binary { kind: BinaryKind::Add }, &[x, y]).unwrap();
        graph.output(z, "z").unwrap();
        let refuse = |_: &Graph, cover: &Cover| Err(Unsupported { op: cover.form.name().into(), reason: "no".into() });
        let Err(Error::Unsupported(list)) = cover(&graph, Form::MATCHERS, &refuse) else { panic!("it is covered") };
        assert_eq!(list.iter().map(|why| why.op.as_str()).collect::<Vec<_>>(), ["matmul", "binary"]);
    }

    #[test]
    fn covering_looks_at_each_node_a_bounded_number_of_times() {
        let count = |blocks: usize| {
            let mut graph = Graph::new();
            let mut x = graph.input("x", &[1, 32], DType::F32).unwrap();
            for i in 0..blocks {
                let y = linear(&mut graph, x, &format!("w{i}"));
                x = graph.push(Binary { kind: BinaryKind::Add }, &[x, y]).unwrap();
            }
            graph.output(x, "y").unwrap();
            let asked = std::cell::Cell::new(0usize);
            let supports = |_: &Graph, _: &Cover| {
                asked.set(asked.get() + 1);
                Ok(())
            };
            assert_eq!(cover(&graph, Form::MATCHERS, &supports).unwrap().len(), blocks);
            asked.get()
        };
        assert_eq!(count(5_000), 10 * count(500));
    }
}
