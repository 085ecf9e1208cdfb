//! A watcher is called after each dispatch of a step is encoded and may use its result before the buffer is reused.

use crate::WebGpu;
use crate::backend::Shared;
use crate::read::Rows;
use backend_api::{Error, KernelInfo, Pass, StepParams};
use std::rc::Rc;

/// Callback that runs after each dispatch.
pub(crate) type Watcher = Rc<dyn Fn(Watched<'_>)>;

/// A dispatch of a step, as its watcher sees it.
pub struct Watched<'a> {
    /// Its place among the program's kernels.
    pub kernel: usize,
    /// How many kernels the program has.
    pub kernels: usize,
    /// Description of the kernel.
    pub info: &'a KernelInfo,
    /// The parameters of its step.
    pub params: &'a StepParams,
    /// Where each matrix of [`KernelInfo::made`] lies: from the buffer's beginning, rows without padding. It may be bound for
    /// reading as storage; it may be larger than the matrix.
    pub buffers: &'a [wgpu::Buffer],
    /// Takes commands that run when the dispatch is done and those after it have not begun.
    pub encoder: &'a mut wgpu::CommandEncoder,
    pub(crate) shared: &'a Shared,
}

impl WebGpu {
    /// Has each dispatch of all programs be followed by a call; of one that runs in parts, the last part. While somebody watches,
    /// a dispatch is a pass of its own; without, steps are what they were.
    pub fn watch(&self, watcher: impl Fn(Watched<'_>) + 'static) {
        *self.shared().watcher.borrow_mut() = Some(Rc::new(watcher));
    }
}

impl Watched<'_> {
    /// Shows it to a watcher that knows no WebGPU.
    pub(crate) fn show(self, watcher: &backend_api::Watcher) {
        let Watched { kernel, kernels, info, params, buffers, encoder, shared } = self;
        let mut read = |made: usize| {
            let found = buffers.get(made).zip(info.made.get(made));
            let missing = || Error::Invalid(format!("{} makes no matrix {made}", info.name));
            let (buffer, matrix) = found.ok_or_else(missing)?;
            let bytes = (matrix.rows * matrix.cols * size_of::<f32>()) as u64;
            // What the step has so far is submitted with the copy.
            let rest = shared.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: None });
            *shared.pending.borrow_mut() = Some(std::mem::replace(encoder, rest));
            let rows = Rows { device: bytes, host: bytes, coded: None };
            shared.reads.borrow_mut().begin(shared, buffer, 0, rows)
        };
        watcher(Pass { kernel, kernels, info, params, read: &mut read });
    }
}
