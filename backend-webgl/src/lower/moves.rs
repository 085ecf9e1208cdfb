//! Operators that only move data: boxes, tiles, triangles.

use super::Lowering;
use crate::kernel::{Draw, Kernel};
use backend_api::op::{Pad, Set, Tri};

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
