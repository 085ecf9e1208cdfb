//! `im2col`: what a kernel sees at each of its places, as rows. A product of them with the kernels' rows is a convolution.
//!
//! *Operands*: x `[n, c, h, w]`. *Results*: `[n, h', w', c * kh * kw]`, columns ordered by channel, then down and across
//! the kernel; pixels outside of x are 0. A signal of one dimension is an image of height 1.
//!
//! *Source*: K. Chellapilla, S. Puri, P. Simard, "High performance convolutional neural networks for document processing",
//! 2006; `ggml_im2col`.

use super::describe::{Describe, EXACT, Output, arity, ensure, floats, shape};
use super::window::Window;
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Im2Col {
    /// Pixels of the kernel, down and across.
    pub kernel: [usize; 2],
    /// How it moves.
    pub window: Window,
}

impl Describe for Im2Col {
    const NAME: &'static str = "im2col";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x] = arity(inputs)?;
        floats(&[x])?;
        ensure(x.shape.rank() == 4, || "x must be [n, c, h, w]".into())?;
        let [n, c, h, w] = x.shape.dims4();
        let [down, across] = self.window.places([h, w], self.kernel)?;
        let seen = self.kernel.iter().try_fold(c, |all, size| all.checked_mul(*size));
        let result = shape(&[n, down, across, seen.ok_or("the kernel is too large")?])?;
        Ok(vec![Output::New(result, DType::F32)])
    }
}
