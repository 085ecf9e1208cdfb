//! `chain`: functions of single elements, and nodes between them that only say which element of an operand it is (slices,
//! transpositions, broadcasts), in one pass.
//!
//! It is no pattern: whatever such nodes follow each other, where nobody else has use for what lies between them.
//!
//! *Operands*: those of its steps, each once. *Results*: that of its last step.

use super::found::Found;
use crate::elementary::Scalar;
use crate::error::Error;
use crate::graph::{Graph, Node, TensorId};
use crate::links::Links;
use crate::op::Op;
use crate::tensor::{DType, Shape};

/// The most operands: as many as a kernel of every device can bind beside its result.
pub const OPERANDS: usize = 6;
/// The most steps, so that a shader stays short.
const STEPS: usize = 16;

/// See the [module page](self).
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// Its nodes, each after those whose results it takes.
    pub steps: Vec<Step>,
}

/// A node of a chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The operator.
    pub op: Op,
    /// Where its operands come from.
    pub inputs: Vec<Source>,
    /// The shapes of its operands.
    pub shapes: Vec<Shape>,
    /// The shape of its result.
    pub shape: Shape,
}

/// Where a step finds an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// An operand of the chain, by its place.
    Operand(usize),
    /// The result of a step.
    Step(usize),
}

/// Which element of a tensor belongs to an element of the chain's result.
///
/// *Units*: elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// The one that belongs to the first element.
    pub at: usize,
    /// How many further it is along each of the result's four dimensions.
    pub strides: [usize; 4],
}

impl View {
    /// Each element of a row-major tensor, of which dimensions of 1 are repeated.
    pub fn of(dims: [usize; 4]) -> View {
        let strides = [dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1];
        View { at: 0, strides: std::array::from_fn(|axis| if dims[axis] == 1 { 0 } else { strides[axis] }) }
    }
}

/// The views that a node has of its operands, where the chain's result has `whole` dimensions and this view of the node's
/// result; nothing where they cannot be told by strides.
fn views(op: &Op, shapes: &[Shape], shape: &Shape, whole: [usize; 4], view: View) -> Option<Vec<View>> {
    // Then an element's place in the result tells its coordinates in the node's result.
    let is_whole = shape.dims4() == whole && view == View::of(whole);
    match op {
        Op::Permute(op) => {
            let (dims, perm) = op.normalized();
            if perm == [0, 1, 2, 3] {
                // Another shape of the same elements.
                return Some(vec![view]);
            }
            let all = View::of(dims);
            is_whole.then(|| vec![View { at: 0, strides: perm.map(|axis| all.strides[axis]) }])
        }
        Op::Slice(op) => {
            let [d0, d1, d2, _] = shape.dims4();
            let all = View::of([d0, d1, d2, shapes.first()?.cols()]);
            let columns = if op.len == 1 { 0 } else { 1 };
            let strides = [all.strides[0], all.strides[1], all.strides[2], columns];
            is_whole.then(|| vec![View { at: op.start, strides }])
        }
        _ if op.function().is_some() => {
            let of = |operand: &Shape| match operand.dims4() == shape.dims4() {
                true => Some(view),
                false => is_whole.then(|| View::of(operand.dims4())),
            };
            shapes.iter().map(of).collect()
        }
        _ => None,
    }
}

/// Whether nodes of an operator may be steps.
fn is_step(op: &Op) -> bool {
    op.function().is_some() || matches!(op, Op::Slice(_) | Op::Permute(_))
}

impl Chain {
    /// The longest one that has a node, of nodes that nothing covers, if it has more than that node.
    pub fn find(links: &Links<'_>, at: usize) -> Option<Found<Chain>> {
        let mut ends = vec![at];
        while let Some(output) = ends.last().and_then(|end| links.node(*end).outputs.first())
            && let Some((user, node)) = links.only_user(*output)
            && is_step(&node.op)
            && !links.is_taken(user)
            && ends.len() < STEPS
        {
            ends.push(user);
        }
        ends.into_iter().rev().filter_map(|end| Chain::ending(links, end)).find(|found| found.nodes.contains(&at))
    }

    /// The one that ends at a node, if it has more than that node.
    fn ending(links: &Links<'_>, at: usize) -> Option<Found<Chain>> {
        let output = *links.node(at).outputs.first()?;
        let whole = links.tensor(output).shape.dims4();
        let chain = Chain { steps: Vec::new() };
        let mut finding = Finding { links, whole, open: 1, chain, nodes: Vec::new(), inputs: Vec::new() };
        let end = finding.step((at, links.node(at)), View::of(whole));
        let Finding { chain, nodes, inputs, .. } = finding;
        (end.is_some() && nodes.len() > 1).then(|| Found { form: chain, nodes, inputs, outputs: vec![output] })
    }

    /// Records it as models do.
    ///
    /// *Errors*: operands that do not fit.
    pub fn record(&self, graph: &mut Graph, operands: &[TensorId]) -> Result<Vec<TensorId>, Error> {
        let mut made = Vec::new();
        for step in &self.steps {
            let of = |source: &Source| match source {
                Source::Operand(place) => operands.get(*place).copied(),
                Source::Step(step) => made.get(*step).copied(),
            };
            let inputs: Option<Vec<TensorId>> = step.inputs.iter().map(of).collect();
            let missing = || Error::Invalid(format!("chain does not take {} operands", operands.len()));
            made.push(graph.push(step.op.clone(), &inputs.ok_or_else(missing)?)?);
        }
        Ok(made.last().copied().into_iter().collect())
    }

    /// An element of the result. `operand` gives the element that an operand, by its place, has in a view, and `parameter`
    /// a number that an operator has, by the step and the number's name.
    pub fn element<T: Scalar>(
        &self,
        operand: &mut dyn FnMut(usize, View) -> T,
        parameter: &mut dyn FnMut(usize, &'static str, f32) -> T,
    ) -> Option<T> {
        let last = self.steps.len().checked_sub(1)?;
        let whole = self.steps[last].shape.dims4();
        self.part(Source::Step(last), View::of(whole), whole, operand, parameter)
    }

    fn part<T: Scalar>(
        &self,
        source: Source,
        view: View,
        whole: [usize; 4],
        operand: &mut dyn FnMut(usize, View) -> T,
        parameter: &mut dyn FnMut(usize, &'static str, f32) -> T,
    ) -> Option<T> {
        let at = match source {
            Source::Operand(place) => return Some(operand(place, view)),
            Source::Step(at) => at,
        };
        let step = self.steps.get(at)?;
        let views = views(&step.op, &step.shapes, &step.shape, whole, view)?;
        let mut inputs = Vec::new();
        for (source, view) in step.inputs.iter().zip(views) {
            inputs.push(self.part(*source, view, whole, operand, parameter)?);
        }
        match step.op.function() {
            Some(_) => step.op.element(&inputs, &mut |name, value| parameter(at, name, value)),
            None => inputs.pop(),
        }
    }
}

/// State of the search for a chain.
struct Finding<'l, 'g> {
    links: &'l Links<'g>,
    /// Dimensions of the result.
    whole: [usize; 4],
    /// Operands that it has so far, if nothing more of what makes them joins it.
    open: usize,
    chain: Chain,
    nodes: Vec<usize>,
    inputs: Vec<TensorId>,
}

impl Finding<'_, '_> {
    /// Takes a node and what may come before it; nothing if it cannot be a step.
    fn step(&mut self, (at, node): (usize, &Node), view: View) -> Option<Source> {
        let shape_of = |id: &TensorId| self.links.tensor(*id).shape;
        let shapes: Vec<Shape> = node.inputs.iter().map(shape_of).collect();
        let shape = shape_of(node.outputs.first()?);
        let views = views(&node.op, &shapes, &shape, self.whole, view)?;
        let open = self.open + node.inputs.len() - 1;
        let is_dense = node.inputs.iter().all(|id| self.links.tensor(*id).dtype == DType::F32);
        if self.links.is_taken(at) || open > OPERANDS || self.nodes.len() == STEPS || !is_dense {
            return None;
        }
        self.open = open;
        self.nodes.push(at);
        let inputs = node.inputs.iter().zip(views).map(|(id, view)| self.source(*id, view)).collect();
        self.chain.steps.push(Step { op: node.op.clone(), inputs, shapes, shape });
        Some(Source::Step(self.chain.steps.len() - 1))
    }

    /// Where a step finds an operand: in the chain, if the node that makes it joins, or outside.
    fn source(&mut self, id: TensorId, view: View) -> Source {
        let maker = self.links.only_for_one(id);
        if let Some(step) = maker.and_then(|maker| self.step(maker, view)) {
            return step;
        }
        let known = self.inputs.iter().position(|known| *known == id);
        Source::Operand(known.unwrap_or_else(|| {
            self.inputs.push(id);
            self.inputs.len() - 1
        }))
    }
}
