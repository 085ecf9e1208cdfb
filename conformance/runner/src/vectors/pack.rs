//! Many small graphs: `cases.json`, and `arrays.bin` with the little-endian f32 or i32 arrays of all of them.

use super::node::Node;
use super::{Array, Done, MAX_ELEMENTS};
use anygpu_conformance::run::{Outcome, judge};
use anyhow::{Context, Result, ensure};
use backend_api::compare::Values;
use backend_api::run::{NativeHost, Rig};
use backend_api::{Backend, DType, Graph, Kind, StepLimits, StepParams, TensorId, Update};
use serde::Deserialize;
use std::path::Path;

/// A graph with its inputs and what it must arrive at. Tensors are numbered: inputs first, then results of nodes.
#[derive(Debug, Deserialize)]
struct Case {
    name: String,
    /// Name of the test in the collection that it comes from.
    of: String,
    inputs: Vec<Place>,
    nodes: Vec<Node>,
    outputs: Vec<Expected>,
}

/// Where an array lies among those of all cases.
#[derive(Debug, Deserialize)]
struct Place {
    dtype: Element,
    shape: Vec<usize>,
    /// The byte where it begins.
    at: usize,
    /// Whether an input is a state, which a node continues.
    #[serde(default)]
    state: bool,
}

/// The element type of an array.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Element {
    F32,
    I32,
}

/// Expected type and shape of a tensor.
#[derive(Debug, Deserialize)]
struct Expected {
    tensor: usize,
    #[serde(flatten)]
    array: Place,
}

impl Place {
    fn array(&self, arrays: &[u8]) -> Result<Array> {
        let len = self.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d as u64)).filter(|n| *n <= MAX_ELEMENTS);
        let bytes = len.context("an array has too many elements")? as usize * 4;
        let part = self.at.checked_add(bytes).and_then(|end| arrays.get(self.at..end));
        let dtype = match self.dtype {
            Element::F32 => DType::F32,
            Element::I32 => DType::I32,
        };
        let bytes = part.context("an array is not within arrays.bin")?.to_vec();
        Ok(Array { shape: self.shape.clone(), data: Values { dtype, bytes } })
    }
}

/// Replays the cases of a folder.
///
/// *Errors*: files that cannot be read. What is wrong with one case fails that case.
pub fn replay(folder: &Path, backend: &dyn Backend) -> Result<Vec<Done>> {
    let (cases, arrays) = read(folder)?;
    let done = cases.into_iter().map(|case| {
        let (of, name) = (case.of.clone(), case.name.clone());
        let outcome = run(case, &arrays, backend).unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
        (of, name, outcome)
    });
    Ok(done.collect())
}

fn read(folder: &Path) -> Result<(Vec<Case>, Vec<u8>)> {
    let path = |name: &str| (folder.join(name), format!("cannot read {}", folder.join(name).display()));
    let (cases, why) = path("cases.json");
    let cases = std::fs::read_to_string(cases).context(why)?;
    let (arrays, why) = path("arrays.bin");
    Ok((serde_json::from_str(&cases).context("cases.json is malformed")?, std::fs::read(arrays).context(why)?))
}

/// Runs a case. It may differ as much as the least exact of its operators may.
fn run(case: Case, arrays: &[u8], backend: &dyn Backend) -> Result<Outcome> {
    let (mut graph, mut tensors, mut tolerance) = (Graph::new(), Vec::new(), 0f64);
    let mut inputs = Vec::new();
    for (index, place) in case.inputs.iter().enumerate() {
        let array = place.array(arrays)?;
        let kind = if place.state { Kind::State(Update::Replace) } else { Kind::Input };
        tensors.push(graph.external(kind, format!("input{index}"), &array.shape, array.data.dtype)?);
        inputs.push(array.data.bytes);
    }
    let number =
        |tensors: &[TensorId], at: usize| tensors.get(at).copied().with_context(|| format!("there is no tensor {at}"));
    for node in case.nodes {
        let operands = node.inputs.iter().map(|at| number(&tensors, *at)).collect::<Result<Vec<_>>>()?;
        let op = node.operator.op()?;
        tolerance = tolerance.max(op.tolerance());
        tensors.extend(graph.push_multi(op, &operands)?);
    }
    let mut expected = Vec::new();
    for output in &case.outputs {
        let (id, array) = (number(&tensors, output.tensor)?, output.array.array(arrays)?);
        let shape: Vec<usize> = graph.tensor(id).shape.dims().collect();
        ensure!(shape == array.shape, "a result has the shape {shape:?} instead of {:?}", array.shape);
        graph.output(id, format!("output{}", output.tensor))?;
        expected.push((id, array.data));
    }
    // Results come in the order of the tensors, those of states among them.
    expected.sort_by_key(|(id, _)| *id);
    let expected: Vec<Values> = expected.into_iter().map(|(_, values)| values).collect();
    let written = |kind: Kind| matches!(kind, Kind::Output | Kind::State(_));
    let kinds: Vec<Kind> = graph.externals().map(|(_, tensor)| tensor.kind).filter(|kind| written(*kind)).collect();
    let rows = StepLimits::of(&graph, 1).rows;
    let mut rig = Rig::guarded(backend, &graph)?;
    for (index, bytes) in inputs.iter().enumerate() {
        rig.write(index, bytes)?;
    }
    rig.step(&StepParams::at(0, if rows == usize::MAX { 1 } else { rows as u32 }))?;
    let found = pollster::block_on(rig.results(&NativeHost::default()))?;
    let found: Vec<Values> =
        found.into_iter().zip(kinds).filter(|(_, kind)| *kind == Kind::Output).map(|(values, _)| values).collect();
    Ok(judge(&found, &expected, tolerance, false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reference_cpu::{Cpu, Options};

    fn onnx() -> (Vec<Case>, Vec<u8>) {
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/onnx")).unwrap()
    }

    #[test]
    fn a_wrong_value_fails_each_case() {
        let backend = Cpu::new(Options { fast: false, ..Default::default() });
        let (cases, mut arrays) = onnx();
        assert!(cases.len() > 300);
        for mut case in cases {
            let name = case.name.clone();
            // Other cases may have the same array, so it is a copy that is changed.
            let place = &mut case.outputs[0].array;
            let mut wrong = place.array(&arrays).unwrap().data.bytes;
            // The sign and the highest bit of the exponent of a float.
            *wrong.last_mut().unwrap() ^= 0xC0;
            place.at = arrays.len();
            arrays.extend(wrong);
            let outcome = run(case, &arrays, &backend).unwrap();
            assert!(matches!(outcome, Outcome::Failed(_)), "{name} passes with a wrong value");
        }
    }

    #[test]
    fn what_a_file_should_not_say_fails_the_case() {
        let backend = Cpu::new(Options { fast: false, ..Default::default() });
        let fails = |text: &str| {
            let case: Case = serde_json::from_str(text).unwrap();
            run(case, &[0; 16], &backend).unwrap_err().to_string()
        };
        let case = |input: &str, node: &str, output: &str| {
            format!(r#"{{"name": "n", "of": "o", "inputs": [{input}], "nodes": [{node}], "outputs": [{output}]}}"#)
        };
        let x = r#"{"dtype": "f32", "shape": [4], "at": 0}"#;
        let neg = r#"{"op": "unary", "kind": "neg", "inputs": [0]}"#;
        let y = r#"{"tensor": 1, "dtype": "f32", "shape": [4], "at": 0}"#;
        let far = r#"{"dtype": "f32", "shape": [4], "at": 18446744073709551615}"#;
        assert!(fails(&case(far, neg, y)).contains("not within arrays.bin"));
        let large = r#"{"dtype": "f32", "shape": [4294967296, 4294967296], "at": 0}"#;
        assert!(fails(&case(large, neg, y)).contains("too many elements"));
        assert!(fails(&case(x, r#"{"op": "unary", "kind": "neg", "inputs": [1]}"#, y)).contains("no tensor 1"));
        assert!(fails(&case(x, r#"{"op": "unary", "kind": "sinh", "inputs": [0]}"#, y)).contains("sinh"));
        let narrow = r#"{"tensor": 1, "dtype": "f32", "shape": [2, 2], "at": 0}"#;
        assert!(fails(&case(x, neg, narrow)).contains("shape"));
    }
}
