//! Who watches a program sees each dispatch of a step once it is encoded, and may use what it makes before a later one takes
//! the buffer for something else.

use crate::WebGpu;
use backend_api::{KernelInfo, StepParams};
use std::rc::Rc;

/// What is called after each dispatch.
pub(crate) type Watcher = Rc<dyn Fn(Watched<'_>)>;

/// A dispatch of a step, as its watcher sees it.
pub struct Watched<'a> {
    /// Its place among the program's kernels.
    pub kernel: usize,
    /// How many kernels the program has.
    pub kernels: usize,
    /// What it is.
    pub info: &'a KernelInfo,
    /// The parameters of its step.
    pub params: &'a StepParams,
    /// Where each matrix of [`KernelInfo::made`] lies: from the buffer's beginning, rows without padding. It may be bound for
    /// reading as storage; it may be larger than the matrix.
    pub buffers: &'a [wgpu::Buffer],
    /// Takes commands that run when the dispatch is done and those after it have not begun.
    pub encoder: &'a mut wgpu::CommandEncoder,
}

impl WebGpu {
    /// Has each dispatch of all programs be followed by a call; of one that runs in parts, the last part. While somebody watches,
    /// a dispatch is a pass of its own; without, steps are what they were.
    pub fn watch(&self, watcher: impl Fn(Watched<'_>) + 'static) {
        *self.shared().watcher.borrow_mut() = Some(Rc::new(watcher));
    }
}
