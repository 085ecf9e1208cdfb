//! Which pixels of an image the places of a kernel fall on.

use super::describe::ensure;

/// How a kernel moves over an image, in pixels down and across. Pixels outside of the image are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// From one result to the next.
    pub stride: [usize; 2],
    /// Pixels before the image.
    pub before: [usize; 2],
    /// Pixels after it.
    pub after: [usize; 2],
    /// From one place of the kernel to the next.
    pub dilation: [usize; 2],
}

impl Window {
    /// Each pixel, with nothing around.
    pub const PLAIN: Window = Window { stride: [1; 2], before: [0; 2], after: [0; 2], dilation: [1; 2] };

    /// With as many pixels before the image as after it.
    pub fn padded(self, padding: [usize; 2]) -> Window {
        Window { before: padding, after: padding, ..self }
    }

    /// The places of a kernel in an image, down and across.
    ///
    /// *Errors*: there is none, or a number is out of range.
    pub fn places(&self, image: [usize; 2], kernel: [usize; 2]) -> Result<[usize; 2], String> {
        let places = |axis: usize| {
            let (stride, dilation, kernel) = (self.stride[axis], self.dilation[axis], kernel[axis]);
            ensure(stride > 0 && dilation > 0 && kernel > 0, || "strides, dilations and kernels begin at 1".into())?;
            let padded = self.before[axis].checked_add(self.after[axis]).and_then(|n| n.checked_add(image[axis]));
            // Places are numbers of 32 bits in shaders.
            let padded = padded.filter(|n| *n <= i32::MAX as usize).ok_or("the image is padded too far")?;
            let reach = dilation.checked_mul(kernel - 1).filter(|reach| *reach < padded);
            let reach = reach.ok_or_else(|| format!("a kernel of {kernel} is larger than the image"))?;
            Ok::<usize, String>((padded - reach - 1) / stride + 1)
        };
        Ok([places(0)?, places(1)?])
    }
}
