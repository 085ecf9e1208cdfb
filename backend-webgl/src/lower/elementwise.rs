//! Elementwise operators: by themselves, one after the other, or after the result of another kernel.

use super::Lowering;
use crate::Layout;
use crate::kernel::{Draw, Kernel, Word};
use backend_api::elementary::{Expr, Language, Scalar};
use backend_api::form::chain::{self, Elements};
use backend_api::form::{Chain, Epilogue};
use backend_api::op::{Region, View};
use backend_api::{Shape, Tensor};

/// The names of operands.
const OPERANDS: [&str; chain::OPERANDS] = ["src_x0", "src_x1", "src_x2", "src_x3", "src_x4", "src_x5"];

/// The names of what an epilogue has besides the value that it follows.
const ADDED: [&str; Epilogue::OPERANDS] = ["src_added0", "src_added1", "src_added2"];

/// Chain that follows the result of a kernel.
#[derive(Clone, Copy)]
pub(super) struct Following<'a> {
    chain: &'a Chain,
    /// Operands that the chain adds, and the place of the first of them.
    added: &'a [&'a Tensor],
    at: usize,
}

impl<'a> Following<'a> {
    /// The operands of a node that are the head's, and what the others are for.
    pub(super) fn of(op: &'a Epilogue, inputs: &'a [&'a Tensor]) -> (&'a [&'a Tensor], Following<'a>) {
        let at = op.of_head(inputs.len());
        let (head, added) = inputs.split_at(at);
        (head, Following { chain: &op.chain, added, at })
    }
}

/// The name of an operand, and its shape if it is bound: otherwise it is a value at hand.
type Named = (&'static str, Option<Shape>);

/// A draw whose elements are being printed: it gets a parameter for each number that a shape or an operator decides.
struct Printed {
    operands: Vec<Named>,
    /// Dimensions of the result.
    whole: [usize; 4],
    layout: Layout,
    draw: Draw,
    /// Functions of single elements: those that lie elsewhere than in the result, and whether they lie in a region.
    functions: Vec<String>,
}

impl Printed {
    /// A parameter of the next function.
    fn int(&mut self, name: &str, value: usize) -> String {
        let name = format!("{name}{}", self.functions.len());
        self.draw.params.push((name.clone(), Word::int(value)));
        name
    }

    /// A coordinate of the result, as a view takes it.
    fn along(&mut self, view: &View, axis: usize, coordinate: &str) -> String {
        let Some(wrap) = view.wraps[axis] else { return coordinate.into() };
        let shift = self.int(&format!("shift{axis}_"), wrap.shift);
        format!("around({coordinate}, {shift}, {})", self.int(&format!("size{axis}_"), wrap.dim))
    }

    /// The function of a row and a column whose body ends with such a statement, for all columns that a fragment makes.
    fn function(&mut self, result: &str) -> Expr {
        let name = format!("one{}", self.functions.len());
        let first = "    ivec4 d = place(row, col);\n";
        self.functions.push(format!("float {name}(int row, int col) {{\n{first}    return {result};\n}}\n"));
        Expr::name(match self.layout.lanes() {
            4 => format!("vec4({name}(row, col), {name}(row, col + 1), {name}(row, col + 2), {name}(row, col + 3))"),
            _ => format!("vec4({name}(row, col), 0.0, 0.0, 0.0)"),
        })
    }
}

/// The names of an element's coordinates.
const PLACE: [&str; 4] = ["d.x", "d.y", "d.z", "d.w"];

impl Elements<Expr> for Printed {
    fn operand(&mut self, operand: usize, view: View) -> Expr {
        let (name, Some(x)) = self.operands[operand] else { return Expr::name(self.operands[operand].0) };
        let dims = x.dims4();
        if view == View::of(self.whole) && dims == self.whole {
            return Expr::name(format!("lanes({name}, out_cols, row, col)"));
        }
        // Where a row of the result belongs to one row of the operand, no strides are needed to find that.
        let outer = View::of(dims);
        let is_same = dims[..3] == self.whole[..3] && view.strides[..3] == outer.strides[..3];
        let row = match view.strides {
            [0, 0, 0, _] if x.rows() == 1 => Some("0"),
            _ if is_same && view.wraps[..3] == [None; 3] => Some("row"),
            _ => None,
        };
        if let (Some(row), 0, 1, None, true) = (row, view.at, view.strides[3], view.wraps[3], dims[3] == self.whole[3])
        {
            return Expr::name(format!("lanes({name}, out_cols, {row}, col)"));
        }
        let cols = self.int("cols", x.cols());
        let mut at = self.int("at", view.at);
        let axes = if row.is_some() { 3..4 } else { 0..4 };
        for axis in axes.filter(|axis| view.strides[*axis] > 0) {
            let along = self.along(&view, axis, PLACE[axis]);
            let stride = self.int(&format!("step{axis}_"), view.strides[axis]);
            at += &format!(" + {along} * {stride}");
        }
        self.function(&match row {
            Some(row) => format!("load1({name}, {cols}, {row}, {at})"),
            None => format!("load1({name}, {cols}, ({at}) / {cols}, ({at}) % {cols})"),
        })
    }

    fn parameter(&mut self, step: usize, name: &'static str, value: f32) -> Expr {
        let name = format!("{name}{step}");
        let named = Language::Glsl.parameter(&name);
        self.draw.params.push((name, Word::Float(value)));
        named
    }

    fn inside(&mut self, region: Region) -> Expr {
        let (whole, mut conditions) = (self.whole, Vec::new());
        match region {
            Region::Box { first, dims } => {
                for axis in (0..4).filter(|axis| dims[*axis] != whole[*axis]) {
                    let first = self.int(&format!("first{axis}_"), first[axis]);
                    let len = self.int(&format!("len{axis}_"), dims[axis]);
                    conditions.push(format!("within({}, {first}, {len})", PLACE[axis]));
                }
            }
            Region::Triangle(kind) => {
                let (near, far) = if kind.is_upper() { (2, 3) } else { (3, 2) };
                let least = self.int("least", kind.least());
                conditions.push(format!("{} >= {} + {least}", PLACE[far], PLACE[near]));
            }
        }
        if conditions.is_empty() {
            return Expr::number(1.0);
        }
        self.function(&format!("{} ? 1.0 : 0.0", conditions.join(" && ")))
    }
}

impl Lowering<'_> {
    pub(super) fn chain(&self, op: &Chain) -> Result<Kernel, String> {
        let mut draw = self.draw("elementwise")?;
        for (index, name) in (0..self.inputs.len()).zip(OPERANDS) {
            draw = draw.input(name, index, self.input(index)?);
        }
        let operands = OPERANDS.into_iter().zip(self.inputs.iter().map(|x| Some(x.shape))).collect();
        Ok(self.printed(op, draw, operands)?.into())
    }

    /// Adds what follows to a draw whose shader includes `following.glsl`.
    pub(super) fn followed(&self, draw: Draw) -> Result<Draw, String> {
        let Some(Following { chain, added, at }) = self.following else { return Ok(draw) };
        let mut draw = draw.define("EPILOGUE", "");
        for (index, (name, tensor)) in ADDED.into_iter().zip(added).enumerate() {
            draw = draw.input(name, at + index, tensor);
        }
        let added = ADDED.into_iter().zip(added.iter().map(|x| Some(x.shape)));
        self.printed(chain, draw, std::iter::once(("made", None)).chain(added).collect())
    }

    /// Gives a draw the words VIEWS, LINES and RESULT.
    fn printed(&self, chain: &Chain, draw: Draw, operands: Vec<Named>) -> Result<Draw, String> {
        let whole = self.output(0)?.shape.dims4();
        let draw = draw.int("dim1", whole[1]).int("dim2", whole[2]);
        let mut printed = Printed { operands, whole, layout: self.layout, draw, functions: Vec::new() };
        let expression = chain.element(&mut printed).ok_or("it is not elementwise")?;
        let (lines, result) = Language::Glsl.lines(&expression);
        let draw = printed.draw.word("VIEWS", printed.functions.concat()).word("LINES", lines);
        Ok(draw.word("RESULT", result))
    }
}
