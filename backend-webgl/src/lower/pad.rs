//! What lies around the elements of a tensor.

use super::Lowering;
use crate::kernel::Kernel;
use backend_api::op::Pad;

impl Lowering<'_> {
    pub(super) fn pad(&self, op: &Pad) -> Result<Kernel, String> {
        let x = self.input(0)?;
        let [_, d1, d2, _] = self.output(0)?.shape.dims4();
        let mut draw = self.draw("pad")?.input("src_x", 0, x).int("dim1", d1).int("dim2", d2);
        draw = draw.define_if(op.circular, "CIRCULAR");
        let (dims, shifts) = (x.shape.dims4(), op.shift(&x.shape));
        for axis in 0..4 {
            draw = draw.int(format!("x{axis}"), dims[axis]).int(format!("before{axis}"), op.before[axis]);
            draw = draw.int(format!("shift{axis}"), shifts[axis]);
        }
        Ok(draw.into())
    }
}
