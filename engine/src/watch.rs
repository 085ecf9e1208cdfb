//! Observation of a running model: results of the kernels of a step.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use backend_api::run::{Host, finish_read};
use backend_api::{Backend, Error, KernelInfo, Made, Pass, ReadId};

use crate::{Engine, EngineError};

/// A watched step, which computed a single token.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchedStep {
    /// Position of its token in the text.
    pub position: usize,
    /// Results of its kernels, in order.
    pub matrices: Vec<WatchedMatrix>,
}

/// A matrix that a kernel of a step computed.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchedMatrix {
    /// The kernel with its variant.
    pub kernel: String,
    /// The weights or states that distinguish it from other uses of the kernel.
    pub subject: String,
    /// Description of the matrix.
    pub made: Made,
    /// The values, row by row.
    pub values: Vec<f32>,
}

/// Watcher of a model's steps. Steps take longer while it exists, and compute the same. There can be one at a time.
pub struct Watch {
    backend: Rc<dyn Backend>,
    seen: Rc<RefCell<Seen>>,
}

/// Most steps that are watched or read at a time: one is computed while the one before it is read.
const MOST: usize = 3;

/// Steps that were not returned yet, oldest first.
#[derive(Default)]
struct Seen {
    steps: VecDeque<Seeing>,
    failed: Option<Error>,
}

/// A step that is being watched or read.
struct Seeing {
    step: WatchedStep,
    /// Matrices that are not read yet, by their index.
    reads: Vec<(usize, ReadId)>,
    is_whole: bool,
}

impl Seen {
    /// Records a kernel's results.
    fn see(&mut self, pass: Pass<'_>, is_wanted: &dyn Fn(&KernelInfo, &Made) -> bool) {
        let Pass { kernel, kernels, info, params, read } = pass;
        if kernel == 0 && params.rows == 1 && self.steps.len() < MOST && self.failed.is_none() {
            let step = WatchedStep { position: params.position as usize, matrices: Vec::new() };
            self.steps.push_back(Seeing { step, reads: Vec::new(), is_whole: false });
        }
        let Some(seeing) = self.steps.back_mut().filter(|seeing| !seeing.is_whole) else { return };
        for (at, made) in info.made.iter().enumerate().filter(|(_, made)| is_wanted(info, made)) {
            match read(at) {
                Ok(read) => seeing.reads.push((seeing.step.matrices.len(), read)),
                Err(error) => self.failed = Some(error),
            }
            let (kernel, subject, made) = (info.name.clone(), info.subject.clone(), made.clone());
            let values = vec![0.0; made.rows * made.cols];
            seeing.step.matrices.push(WatchedMatrix { kernel, subject, made, values });
        }
        seeing.is_whole = kernel + 1 == kernels;
    }
}

impl Watch {
    /// Begins to watch the matrices for which `is_wanted` returns true.
    ///
    /// *Errors*: the backend does not support watching.
    pub fn new(
        engine: &Engine,
        is_wanted: impl Fn(&KernelInfo, &Made) -> bool + 'static,
    ) -> Result<Watch, EngineError> {
        let (backend, seen) = (engine.model().backend().clone(), Rc::<RefCell<Seen>>::default());
        let noted = seen.clone();
        backend.set_watcher(Some(Rc::new(move |pass: Pass<'_>| noted.borrow_mut().see(pass, &is_wanted))))?;
        Ok(Watch { backend, seen })
    }

    /// Returns the next watched step once it is read, and never waits. If steps are computed faster than they are read,
    /// some are not watched, so that the model is not held up.
    ///
    /// *Errors*: the device was lost.
    pub fn step(&self) -> Result<Option<WatchedStep>, EngineError> {
        let seen = &mut *self.seen.borrow_mut();
        if let Some(error) = &seen.failed {
            return Err(error.clone().into());
        }
        let Some(Seeing { step, reads, .. }) = seen.steps.front_mut().filter(|seeing| seeing.is_whole) else {
            return Ok(None);
        };
        while let Some((at, read)) = reads.last() {
            if !self.backend.try_read(*read, bytemuck::cast_slice_mut(&mut step.matrices[*at].values))? {
                return Ok(None);
            }
            reads.pop();
        }
        Ok(seen.steps.pop_front().map(|seeing| seeing.step))
    }

    /// Stops watching, and returns the remaining steps. Waits for reads that were begun, since they hold memory.
    ///
    /// *Errors*: the device was lost.
    pub async fn end(self, host: &dyn Host) -> Result<Vec<WatchedStep>, EngineError> {
        self.backend.set_watcher(None)?;
        let Seen { steps: seen, failed } = self.seen.take();
        let mut steps = Vec::new();
        for Seeing { mut step, reads, is_whole } in seen {
            for (at, read) in reads {
                let values = bytemuck::cast_slice_mut(&mut step.matrices[at].values);
                finish_read(&*self.backend, read, values, host).await?;
            }
            steps.extend(is_whole.then_some(step));
        }
        failed.map_or(Ok(steps), |error| Err(error.into()))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // A device that returns an error here runs no further steps either.
        let _ = self.backend.set_watcher(None);
    }
}
