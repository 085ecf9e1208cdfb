//! Who watches sees each kernel of a step once it is submitted, and may read what it made before a later one takes its place.

use std::rc::Rc;

use crate::backend::{KernelInfo, ReadId};
use crate::error::Error;
use crate::step::StepParams;

/// A kernel of a step that was submitted, as its watcher sees it.
pub trait Pass {
    /// Its place among the program's kernels.
    fn kernel(&self) -> usize;

    /// How many kernels the program has.
    fn kernels(&self) -> usize;

    /// What it is.
    fn info(&self) -> &KernelInfo;

    /// The parameters of its step.
    fn params(&self) -> &StepParams;

    /// Begins to read a matrix of [`KernelInfo::made`] as the kernel left it: [`Backend::try_read`](crate::Backend::try_read)
    /// gives its rows, little-endian.
    ///
    /// *Errors*: there is no such matrix, out of memory, device lost.
    fn read(&mut self, made: usize) -> Result<ReadId, Error>;
}

/// What is called after each kernel. It must not run steps.
pub type Watcher = Rc<dyn Fn(&mut dyn Pass)>;
