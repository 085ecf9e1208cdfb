//! Images: resized, as rows for a product, convolved.

use super::Lowering;
use crate::kernel::{Draw, Kernel};
use backend_api::Tensor;
use backend_api::op::{Conv2d, Im2Col, Resize, ResizeMode, Window};

/// How a kernel moves over the images x.
fn moving(draw: Draw, window: &Window, x: &Tensor, size: [usize; 2], places: [usize; 2]) -> Draw {
    let [_, channels, h, w] = x.shape.dims4();
    let all = [
        ("image", [h, w]),
        ("kernel", size),
        ("places", places),
        ("stride", window.stride),
        ("before", window.before),
        ("dilation", window.dilation),
    ];
    all.into_iter().fold(draw.int("channels", channels), |draw, (name, [down, across])| {
        draw.int(format!("{name}0"), down).int(format!("{name}1"), across)
    })
}

impl Lowering<'_> {
    pub(super) fn resize(&self, op: &Resize) -> Result<Kernel, String> {
        let x = self.input(0)?;
        let [_, dim1, dim2, _] = self.output(0)?.shape.dims4();
        let mut draw = self.draw("resize")?.input("src_x", 0, x).int("dim1", dim1).int("dim2", dim2);
        draw = match op.mode {
            ResizeMode::Nearest => draw,
            ResizeMode::Linear => draw.define("LINEAR", ""),
            ResizeMode::Antialias => draw.define("ANTIALIAS", ""),
            ResizeMode::Cubic => draw.define("CUBIC", ""),
        };
        for (axis, (dim, at)) in x.shape.dims4().into_iter().zip(op.positions(&x.shape)).enumerate() {
            let all = [("x", dim), ("step", at.step), ("first", at.first), ("unit", at.unit), ("reach", at.reach)];
            draw = all.into_iter().fold(draw, |draw, (name, value)| draw.int(format!("{name}{axis}"), value));
        }
        Ok(draw.into())
    }

    pub(super) fn im2col(&self, op: &Im2Col) -> Result<Kernel, String> {
        let x = self.input(0)?;
        let [_, down, across, _] = self.output(0)?.shape.dims4();
        let draw = moving(self.draw("im2col")?, &op.window, x, op.kernel, [down, across]);
        Ok(draw.input("src_x", 0, x).into())
    }

    pub(super) fn conv2d(&self, op: &Conv2d) -> Result<Kernel, String> {
        let (x, kernel) = (self.input(0)?, self.input(1)?);
        let [_, results, down, across] = self.output(0)?.shape.dims4();
        let [_, own, kh, kw] = kernel.shape.dims4();
        let groups = x.shape.dims4()[1] / own;
        let draw = moving(self.draw("conv2d")?, &op.window, x, [kh, kw], [down, across]);
        let draw = draw.int("results", results).int("of_group", results / groups).int("own", own);
        Ok(draw.input("src_x", 0, x).input("src_kernel", 1, kernel).into())
    }
}
