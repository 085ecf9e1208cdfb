//! Elementwise operators: by themselves, one after the other, or after the result of another kernel.

use super::Node;
use crate::kernel::{Kernel, MAX_BINDINGS, Value};
use backend_api::elementary::{Expr, Language, Scalar};
use backend_api::form::chain::{self, Elements};
use backend_api::form::{Chain, Epilogue};
use backend_api::op::{Region, View};
use backend_api::{Shape, Tensor};

/// The names of operands.
const OPERANDS: [&str; chain::OPERANDS] = ["x0", "x1", "x2", "x3", "x4", "x5"];
/// The names of what an epilogue has besides the value that it follows.
const ADDED: [&str; Epilogue::OPERANDS] = ["added0", "added1", "added2"];

/// Chain that follows the result of a kernel.
#[derive(Clone, Copy)]
pub struct Following<'a> {
    chain: &'a Chain,
    /// Operands that the chain adds, and the place of the first of them.
    added: &'a [&'a Tensor],
    at: usize,
}

impl<'a> Following<'a> {
    /// The operands of a node that are the head's, and what the others are for.
    pub fn of(op: &'a Epilogue, inputs: &'a [&'a Tensor]) -> (&'a [&'a Tensor], Following<'a>) {
        let at = op.of_head(inputs.len());
        let (head, added) = inputs.split_at(at);
        (head, Following { chain: &op.chain, added, at })
    }
}

/// Adds what follows to a kernel that includes `lib/epilogue.wgsl`.
///
/// *Errors*: more bindings than there are.
pub fn followed(kernel: Kernel, node: &Node<'_>) -> Result<Kernel, String> {
    let Some(Following { chain, added, at }) = node.following else { return Ok(kernel) };
    let out = node.outputs[node.outputs.len() - 1].shape;
    let operands = std::iter::once(("value", None)).chain(ADDED.into_iter().zip(added.iter().map(|x| Some(x.shape))));
    let kernel = kernel.flag("EPILOGUE", true).u("epilogue_cols", out.cols());
    let mut kernel = printed(chain, kernel, operands.collect(), out)?;
    for (i, (name, tensor)) in ADDED.into_iter().zip(added).enumerate() {
        kernel = kernel.input(name, at + i, tensor);
    }
    // The result is one more.
    match kernel.bindings.len() + 1 {
        0..=MAX_BINDINGS => Ok(kernel),
        count => Err(format!("it needs {count} storage bindings, and devices have {MAX_BINDINGS}")),
    }
}

/// Elementwise operators, alone or one after the other: each invocation makes an element.
pub fn chain(op: &Chain, node: &Node<'_>) -> Result<Vec<Kernel>, String> {
    let out = node.outputs[0];
    let kernel =
        node.elementwise("elementwise", out.shape.len()).u("len", out.shape.len()).u4("dim", out.shape.dims4());
    let operands = OPERANDS.into_iter().zip(node.inputs.iter().map(|x| Some(x.shape))).collect();
    let mut kernel = printed(op, kernel, operands, out.shape)?;
    for (i, (name, tensor)) in OPERANDS.into_iter().zip(node.inputs).enumerate() {
        kernel = kernel.input(name, i, tensor);
    }
    Ok(vec![kernel.output("out", 0, out)])
}

/// Gives a kernel the words LINES and RESULT.
fn printed(chain: &Chain, kernel: Kernel, operands: Vec<Named>, out: Shape) -> Result<Kernel, String> {
    let mut printed = Printed { operands, out, kernel, count: 0 };
    let expression = chain.element(&mut printed).ok_or("it is not elementwise")?;
    let (lines, result) = Language::Wgsl.lines(&expression);
    Ok(printed.kernel.word("LINES", lines).word("RESULT", result))
}

/// The name of an operand, and its shape if it is bound: otherwise it is a value at hand.
type Named = (&'static str, Option<Shape>);

/// A kernel whose elements are being printed: it gets a parameter for each number that a shape or an operator decides.
struct Printed {
    operands: Vec<Named>,
    /// The shape of the result.
    out: Shape,
    kernel: Kernel,
    /// How many views and regions it has so far.
    count: usize,
}

impl Printed {
    /// A parameter of the next view or region.
    fn unsigned(&mut self, name: &str, value: usize) -> String {
        let name = format!("{name}{}", self.count);
        self.kernel.params.push((name.clone(), Value::U(value as u32)));
        format!("p.{name}")
    }
}

impl Elements<Expr> for Printed {
    fn operand(&mut self, place: usize, view: View) -> Expr {
        let (name, Some(x)) = self.operands[place] else { return Expr::name(self.operands[place].0) };
        if view == View::of(self.out.dims4()) && x.len() == self.out.len() {
            return Expr::name(format!("{name}[i]"));
        }
        let mut index = self.unsigned("at", view.at);
        for axis in (0..4).filter(|axis| view.strides[*axis] > 0) {
            let mut along = format!("d{axis}");
            if let Some(wrap) = view.wraps[axis] {
                let shift = self.unsigned(&format!("shift{axis}_"), wrap.shift);
                let dim = self.unsigned(&format!("size{axis}_"), wrap.dim);
                along = format!("around({along}, {shift}, {dim})");
            }
            let stride = self.unsigned(&format!("step{axis}_"), view.strides[axis]);
            index += &format!(" + {along} * {stride}");
        }
        self.count += 1;
        Expr::name(format!("{name}[{index}]"))
    }

    fn parameter(&mut self, step: usize, name: &'static str, value: f32) -> Expr {
        let name = format!("{name}{step}");
        let named = Language::Wgsl.parameter(&name);
        self.kernel.params.push((name, Value::F(value)));
        named
    }

    fn inside(&mut self, region: Region) -> Expr {
        let whole = self.out.dims4();
        let mut conditions = Vec::new();
        match region {
            Region::Box { first, dims } => {
                for axis in (0..4).filter(|axis| dims[*axis] != whole[*axis]) {
                    let first = self.unsigned(&format!("first{axis}_"), first[axis]);
                    let len = self.unsigned(&format!("len{axis}_"), dims[axis]);
                    conditions.push(format!("within(d{axis}, {first}, {len})"));
                }
            }
            Region::Triangle(kind) => {
                let (near, far) = if kind.is_upper() { (2, 3) } else { (3, 2) };
                conditions.push(format!("d{far} >= d{near} + {}", self.unsigned("least", kind.least())));
            }
        }
        self.count += 1;
        if conditions.is_empty() {
            return Expr::number(1.0);
        }
        Expr::name(format!("select(0.0, 1.0, {})", conditions.join(" && ")))
    }
}
