//! Elementwise operators, by themselves or one after the other.

use super::Node;
use crate::kernel::{Kernel, Value};
use backend_api::elementary::{Expr, Language, Scalar};
use backend_api::form::Chain;
use backend_api::form::chain::{self, Elements};
use backend_api::op::{Region, View};

/// The names of operands.
const OPERANDS: [&str; chain::OPERANDS] = ["x0", "x1", "x2", "x3", "x4", "x5"];

/// A kernel whose elements are being printed: it gets a parameter for each number that a shape or an operator decides.
struct Printed<'a> {
    node: &'a Node<'a>,
    kernel: Kernel,
    /// How many views and regions it has so far.
    count: usize,
}

impl Printed<'_> {
    /// A parameter of the next view or region.
    fn unsigned(&mut self, name: &str, value: usize) -> String {
        let name = format!("{name}{}", self.count);
        self.kernel.params.push((name.clone(), Value::U(value as u32)));
        format!("p.{name}")
    }
}

impl Elements<Expr> for Printed<'_> {
    fn operand(&mut self, place: usize, view: View) -> Expr {
        let (name, x, out) = (OPERANDS[place], self.node.inputs[place].shape, self.node.outputs[0].shape);
        if view == View::of(out.dims4()) && x.len() == out.len() {
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
        let whole = self.node.outputs[0].shape.dims4();
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

/// Elementwise operators, alone or one after the other: each invocation makes an element.
pub fn chain(op: &Chain, node: &Node<'_>) -> Result<Vec<Kernel>, String> {
    let out = node.outputs[0];
    let kernel =
        node.elementwise("elementwise", out.shape.len()).u("len", out.shape.len()).u4("dim", out.shape.dims4());
    let mut printed = Printed { node, kernel, count: 0 };
    let expression = op.element(&mut printed).ok_or("it is not elementwise")?;
    let (lines, result) = Language::Wgsl.lines(&expression);
    let mut kernel = printed.kernel;
    for (i, (name, tensor)) in OPERANDS.into_iter().zip(node.inputs).enumerate() {
        kernel = kernel.input(name, i, tensor);
    }
    Ok(vec![kernel.word("LINES", lines).word("RESULT", result).output("out", 0, out)])
}
