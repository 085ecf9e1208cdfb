//! `chain`: operators each of whose elements is a function of single elements, in one pass.
//!
//! It has no pattern: it takes such nodes as follow each other, where nobody else has use for what lies between them.
//!
//! *Operands*: those of its steps, each once. *Results*: that of its last step.

use super::found::Found;
use crate::elementary::Scalar;
use crate::error::Error;
use crate::graph::{Graph, Node, TensorId};
use crate::links::Links;
use crate::op::{Op, Region, View};
use crate::tensor::{DType, Shape, Tensor};

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

/// Parts that the elements of a chain's result are made of.
pub trait Elements<T> {
    /// The element that an operand, by its place, has in a view.
    fn operand(&mut self, place: usize, view: View) -> T;
    /// A number that the operator of a step has, by its name.
    fn parameter(&mut self, step: usize, name: &'static str, value: f32) -> T;
    /// 1 where an element of the result lies in a region, else 0.
    fn inside(&mut self, region: Region) -> T;
}

impl Chain {
    /// The one of a single node.
    pub fn of(op: &Op, inputs: &[&Tensor], output: &Tensor) -> Chain {
        let shapes: Vec<Shape> = inputs.iter().map(|tensor| tensor.shape).collect();
        let inputs = (0..shapes.len()).map(Source::Operand).collect();
        Chain { steps: vec![Step { op: op.clone(), inputs, shapes, shape: output.shape }] }
    }

    /// The longest one that has a node, of nodes that nothing covers, if it has more than that node.
    pub fn find(links: &Links<'_>, at: usize) -> Option<Found<Chain>> {
        let mut ends = ends(links, *links.node(at).outputs.first()?);
        ends.insert(0, at);
        let chains = ends.into_iter().rev().filter_map(|end| Finding::new(links, end).end(end));
        chains.filter(|found| found.nodes.len() > 1).find(|found| found.nodes.contains(&at))
    }

    /// Those of nodes that nothing covers whose first operand is a tensor, each element at its place, and of which nobody else has
    /// use for that tensor, the longest first.
    pub(super) fn after(links: &Links<'_>, first: TensorId) -> Vec<Found<Chain>> {
        let of = |end| {
            let output = *links.node(end).outputs.first()?;
            if links.tensor(output).shape.dims4() != links.tensor(first).shape.dims4() {
                return None;
            }
            let mut finding = Finding::new(links, end);
            finding.inputs.push(first);
            finding.first = Some(first);
            finding.end(end)
        };
        ends(links, first).into_iter().rev().filter_map(of).collect()
    }

    /// How many operands it has.
    pub fn operands(&self) -> usize {
        let places = self.steps.iter().flat_map(|step| &step.inputs).map(|source| match source {
            Source::Operand(place) => place + 1,
            Source::Step(_) => 0,
        });
        places.max().unwrap_or(0)
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

    /// An element of the result; nothing if an operand has no view.
    pub fn element<T: Scalar>(&self, of: &mut dyn Elements<T>) -> Option<T> {
        let last = self.steps.len().checked_sub(1)?;
        let whole = self.steps[last].shape.dims4();
        self.part(Source::Step(last), View::of(whole), whole, of)
    }

    fn part<T: Scalar>(&self, source: Source, view: View, whole: [usize; 4], of: &mut dyn Elements<T>) -> Option<T> {
        let at = match source {
            Source::Operand(place) => return Some(of.operand(place, view)),
            Source::Step(at) => at,
        };
        let step = self.steps.get(at)?;
        let mut inputs = Vec::new();
        for (source, view) in step.inputs.iter().zip(step.op.views(&step.shapes, &step.shape, whole, view)?) {
            inputs.push(self.part(*source, view, whole, of)?);
        }
        inputs.extend(step.op.region(&step.shapes).map(|region| of.inside(region)));
        step.op.element(&inputs, &mut |name, value| of.parameter(at, name, value))
    }
}

/// The elementwise nodes that follow a tensor one after the other, each the only user of the one before.
fn ends(links: &Links<'_>, first: TensorId) -> Vec<usize> {
    let (mut ends, mut last) = (Vec::new(), Some(first));
    while let Some((user, node)) = last.and_then(|last| links.only_user(last))
        && node.op.is_elementwise()
        && !links.is_taken(user)
        && ends.len() < STEPS
    {
        ends.push(user);
        last = node.outputs.first().copied();
    }
    ends
}

/// State of the search for a chain.
struct Finding<'l, 'g> {
    links: &'l Links<'g>,
    /// Dimensions of the result.
    whole: [usize; 4],
    /// The operand that is to be viewed at each element's place.
    first: Option<TensorId>,
    /// Operands that it has so far, if nothing more of what makes them joins it.
    open: usize,
    chain: Chain,
    nodes: Vec<usize>,
    inputs: Vec<TensorId>,
}

impl<'l, 'g> Finding<'l, 'g> {
    fn new(links: &'l Links<'g>, end: usize) -> Finding<'l, 'g> {
        let whole = links.node(end).outputs.first().map_or([1; 4], |output| links.tensor(*output).shape.dims4());
        let chain = Chain { steps: Vec::new() };
        Finding { links, whole, first: None, open: 1, chain, nodes: Vec::new(), inputs: Vec::new() }
    }

    /// The chain that ends at a node.
    fn end(mut self, at: usize) -> Option<Found<Chain>> {
        let node = self.links.node(at);
        self.step((at, node), View::of(self.whole))?;
        let outputs = node.outputs.iter().take(1).copied().collect();
        let user = self.first.and_then(|first| self.links.only_user(first));
        if self.first.is_some() && user.is_none_or(|(user, _)| !self.nodes.contains(&user)) {
            return None;
        }
        Some(Found { form: self.chain, nodes: self.nodes, inputs: self.inputs, outputs })
    }

    /// Takes a node and what may come before it; nothing if it cannot be a step.
    fn step(&mut self, (at, node): (usize, &Node), view: View) -> Option<Source> {
        let shape_of = |id: &TensorId| self.links.tensor(*id).shape;
        let shapes: Vec<Shape> = node.inputs.iter().map(shape_of).collect();
        let shape = shape_of(node.outputs.first()?);
        let views = node.op.views(&shapes, &shape, self.whole, view)?;
        let open = self.open + node.inputs.len() - 1;
        let is_dense = node.inputs.iter().all(|id| self.links.tensor(*id).dtype == DType::F32);
        let moves_first = || node.inputs.iter().zip(&views).any(|(id, view)| self.is_moved(*id, view));
        if self.links.is_taken(at) || open > OPERANDS || self.nodes.len() == STEPS || !is_dense || moves_first() {
            return None;
        }
        self.open = open;
        self.nodes.push(at);
        let inputs = node.inputs.iter().zip(views).map(|(id, view)| self.source(*id, view)).collect();
        self.chain.steps.push(Step { op: node.op.clone(), inputs, shapes, shape });
        Some(Source::Step(self.chain.steps.len() - 1))
    }

    /// Whether the operand that is to stay at its place would be viewed elsewhere.
    fn is_moved(&self, id: TensorId, view: &View) -> bool {
        self.first == Some(id) && *view != View::of(self.whole)
    }

    /// Where a step finds an operand: in the chain, if the node that makes it joins, or outside.
    fn source(&mut self, id: TensorId, view: View) -> Source {
        let maker = if self.first == Some(id) { None } else { self.links.only_for_one(id) };
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
