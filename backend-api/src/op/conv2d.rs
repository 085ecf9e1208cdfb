//! `conv2d`: a convolution of images, in groups of channels.
//!
//! *Operands*: x `[n, c, h, w]`; kernel `[m, c / groups, kh, kw]`. *Results*: y `[n, m, h', w']`, where `y[i][o]` at a place
//! is the sum of the kernel `o` times the pixels of x that it falls on, those of the channels of its group. There are as
//! many groups as c has parts of the kernel's channels, and each has as many results: one group is a plain convolution, c
//! groups are a depthwise one. Pixels outside of x are 0. The kernel is not turned round, as nowhere in neural networks.
//!
//! *Source*: V. Dumoulin, F. Visin, "A guide to convolution arithmetic for deep learning", 2016; `Conv` of ONNX,
//! `ggml_conv_2d_direct`, `ggml_conv_2d_dw_direct`.

use super::describe::{Describe, F32, Output, arity, ensure, floats, shape};
use super::window::Window;
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conv2d {
    /// How the kernel moves.
    pub window: Window,
}

impl Conv2d {
    /// The most numbers of a kernel that make one result: shaders have bounded loops. Larger ones are a product with the
    /// rows of [`Im2Col`](super::Im2Col).
    pub const MAX_TAPS: usize = 21_845;
}

impl Describe for Conv2d {
    const NAME: &'static str = "conv2d";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x, kernel] = arity(inputs)?;
        floats(&[x, kernel])?;
        let images = x.shape.rank() == 4 && kernel.shape.rank() == 4;
        ensure(images, || "x must be [n, c, h, w] and the kernel [m, c / groups, kh, kw]".into())?;
        let ([n, c, h, w], [m, own, kh, kw]) = (x.shape.dims4(), kernel.shape.dims4());
        let groups = c / own;
        ensure(c.is_multiple_of(own) && m.is_multiple_of(groups), || {
            format!("{c} channels and {m} results are not groups of {own} channels each")
        })?;
        let taps = own * kh * kw;
        ensure(taps <= Self::MAX_TAPS, || {
            format!("kernels of {taps} numbers exceed {}; multiply with the rows of im2col", Self::MAX_TAPS)
        })?;
        let [down, across] = self.window.places([h, w], [kh, kw])?;
        Ok(vec![Output::New(shape(&[n, m, down, across])?, DType::F32)])
    }
}
