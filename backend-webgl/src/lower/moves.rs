//! Operators that only move data: boxes, tiles, triangles; and chains, which move it on the way.

use super::Lowering;
use crate::kernel::{Draw, Kernel};
use backend_api::elementary::{Expr, Language};
use backend_api::form::Chain;
use backend_api::form::chain::{self, View};
use backend_api::op::{Pad, Set, Tri};
use std::cell::RefCell;
use std::fmt::Write;

/// The names of a chain's operands.
const OPERANDS: [&str; chain::OPERANDS] = ["src_x0", "src_x1", "src_x2", "src_x3", "src_x4", "src_x5"];

impl Lowering<'_> {
    pub(super) fn pad(&self, op: &Pad) -> Result<Kernel, String> {
        let mut draw = self.placed(op.before, 0)?.define_if(op.circular, "CIRCULAR");
        for (axis, shift) in op.shift(&self.input(0)?.shape).into_iter().enumerate() {
            draw = draw.int(format!("shift{axis}"), shift);
        }
        Ok(draw.into())
    }

    pub(super) fn set(&self, op: &Set) -> Result<Kernel, String> {
        Ok(self.placed(op.at, 1)?.define("OVER", "").input("src_under", 0, self.input(0)?).into())
    }

    /// Operand `index` as a box of the result.
    fn placed(&self, at: [usize; 4], index: usize) -> Result<Draw, String> {
        let x = self.input(index)?;
        let [_, d1, d2, _] = self.output(0)?.shape.dims4();
        let mut draw = self.draw("pad")?.input("src_x", index, x).int("dim1", d1).int("dim2", d2);
        for (axis, (dim, before)) in x.shape.dims4().into_iter().zip(at).enumerate() {
            draw = draw.int(format!("x{axis}"), dim).int(format!("before{axis}"), before);
        }
        Ok(draw)
    }

    /// Whatever functions of elements follow each other. An operand's elements are found by strides, unless they are those of
    /// the result.
    pub(super) fn chain(&self, op: &Chain) -> Result<Kernel, String> {
        let out = self.output(0)?;
        let [_, d1, d2, _] = out.shape.dims4();
        let mut draw = self.draw("chain")?.int("dim1", d1).int("dim2", d2);
        for (index, name) in (0..self.inputs.len()).zip(OPERANDS) {
            draw = draw
                .input(name, index, self.input(index)?)
                .int(format!("cols{index}"), self.inputs[index].shape.cols());
        }
        let (whole, draw, text) = (View::of(out.shape.dims4()), RefCell::new(draw), RefCell::new(String::new()));
        let add = |more: &dyn Fn(Draw) -> Draw| draw.replace_with(|draw| more(draw.clone()));
        let mut views = 0;
        let mut operand = |of: usize, view: View| {
            let name = OPERANDS[of];
            if view == whole && self.inputs[of].shape.dims4() == out.shape.dims4() {
                return Expr::name(format!("lanes({name}, out_cols, row, col)"));
            }
            let own = views;
            views += 1;
            let (x, [s0, s1, s2, s3]) = (self.inputs[of].shape, view.strides);
            let (x_dims, out_dims) = (x.dims4(), out.shape.dims4());
            // Where a row of the result belongs to one row of the operand, no strides are needed.
            let same_rows = x_dims[..3] == out_dims[..3] && view.strides[..3] == View::of(x_dims).strides[..3];
            let row = match [s0, s1, s2] {
                [0, 0, 0] if x.rows() == 1 => Some("0"),
                _ if same_rows => Some("row"),
                _ => None,
            };
            if let (Some(row), 0, 1, true) = (row, view.at, s3, x_dims[3] == out_dims[3]) {
                return Expr::name(format!("lanes({name}, out_cols, {row}, col)"));
            }
            add(&|draw| draw.int(format!("at{own}"), view.at).int(format!("step{own}_3"), s3));
            let place = match row {
                Some(row) => format!("{row}, at{own} + step{own}_3 * min(col, out_cols - 1)"),
                None => {
                    let names = [0, 1, 2].map(|axis| format!("step{own}_{axis}"));
                    add(&|draw| names.iter().zip([s0, s1, s2]).fold(draw, |d, (name, step)| d.int(name, step)));
                    let [n0, n1, n2] = names;
                    let at =
                        format!("strided(row, min(col, out_cols - 1), ivec4({n0}, {n1}, {n2}, step{own}_3), at{own})");
                    format!("{at} / cols{of}, {at} % cols{of}")
                }
            };
            // Writing to a string cannot fail.
            let _ = write!(
                text.borrow_mut(),
                "float one{own}(int row, int col) {{\n    return load1({name}, cols{of}, {place});\n}}\n"
            );
            let four = |col: &dyn Fn(usize) -> String| match self.layout.lanes() {
                4 => format!("vec4({}, {}, {}, {})", col(0), col(1), col(2), col(3)),
                _ => format!("vec4({}, 0.0, 0.0, 0.0)", col(0)),
            };
            Expr::name(four(&|lane| format!("one{own}(row, col + {lane})")))
        };
        let mut parameter = |step: usize, name: &'static str, value: f32| {
            let name = format!("{name}{step}");
            add(&|draw| draw.float(name.clone(), value));
            Language::Glsl.parameter(&name)
        };
        let expression = op.element(&mut operand, &mut parameter).ok_or("its operands have no strides")?;
        let (lines, result) = Language::Glsl.lines(&expression);
        let draw = draw.into_inner().word("VIEWS", text.into_inner()).word("LINES", lines);
        Ok(draw.word("RESULT", result).into())
    }

    pub(super) fn repeat(&self) -> Result<Kernel, String> {
        let x = self.input(0)?;
        let [_, d1, d2, _] = self.output(0)?.shape.dims4();
        let mut draw = self.draw("repeat")?.input("src_x", 0, x).int("dim1", d1).int("dim2", d2);
        for (axis, dim) in x.shape.dims4().into_iter().enumerate() {
            draw = draw.int(format!("x{axis}"), dim);
        }
        Ok(draw.into())
    }

    pub(super) fn tri(&self, op: &Tri) -> Result<Kernel, String> {
        let x = self.input(0)?;
        let [_, _, rows, _] = x.shape.dims4();
        let draw = self.draw("tri")?.int("rows", rows).int("upper", usize::from(op.kind.is_upper()));
        Ok(draw.int("least", op.kind.least()).input("src_x", 0, x).into())
    }
}
