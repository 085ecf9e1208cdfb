//! A watcher is called after each kernel is submitted and may read its output before the buffer is reused.

use std::rc::Rc;

use crate::backend::ReadId;
use crate::error::Error;
use crate::kernel::KernelInfo;
use crate::step::StepParams;

/// A kernel of a step that was submitted, as its watcher sees it.
pub struct Pass<'a> {
    /// Its place among the program's kernels.
    pub kernel: usize,
    /// How many kernels the program has.
    pub kernels: usize,
    /// Description of the kernel.
    pub info: &'a KernelInfo,
    /// The parameters of its step.
    pub params: &'a StepParams,
    /// Begins to read a matrix of [`KernelInfo::made`] as the kernel left it: [`Backend::try_read`](crate::Backend::try_read)
    /// gives its rows, little-endian. It fails if there is no such matrix, out of memory, or if the device was lost.
    pub read: &'a mut dyn FnMut(usize) -> Result<ReadId, Error>,
}

/// Callback that runs after each kernel. It must not run steps.
pub type Watcher = Rc<dyn Fn(Pass<'_>)>;
