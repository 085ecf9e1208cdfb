//! Results of the kernels of a step, for observers of a model at work.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use backend_api::run::{Host, finish_read};
use backend_api::{Backend, Error, KernelInfo, Made, Pass, ReadId};

use crate::{Engine, EngineError};

/// A step that was watched: one that computed a single token.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchedStep {
    /// The position of its token in the text.
    pub position: usize,
    /// Results of its kernels, in order.
    pub matrices: Vec<WatchedMatrix>,
}

/// A matrix that a kernel of a step made.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchedMatrix {
    /// The kernel with its variant.
    pub kernel: String,
    /// The weights or states that tell it from others like it.
    pub subject: String,
    /// The matrix.
    pub made: Made,
    /// Its values, row by row.
    pub values: Vec<f32>,
}

/// Watches the steps of a model. They take longer meanwhile, and compute the same. One watches at a time.
pub struct Watch {
    backend: Rc<dyn Backend>,
    seen: Rc<RefCell<Seen>>,
}

/// Steps that are watched or read at a time: one is computed while the one before it is read.
const MOST: usize = 3;

/// The steps that are not told yet, oldest first.
#[derive(Default)]
struct Seen {
    steps: VecDeque<Seeing>,
    failed: Option<Error>,
}

/// A step that is watched or read.
struct Seeing {
    step: WatchedStep,
    /// Those of its matrices that are not read yet, by their place.
    reads: Vec<(usize, ReadId)>,
    is_whole: bool,
}

impl Seen {
    /// Takes note of a kernel.
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
    /// Begins to watch: of what kernels make, the matrices that are wanted.
    ///
    /// *Errors*: a backend that cannot be watched.
    pub fn new(
        engine: &Engine,
        is_wanted: impl Fn(&KernelInfo, &Made) -> bool + 'static,
    ) -> Result<Watch, EngineError> {
        let (backend, seen) = (engine.model().backend().clone(), Rc::<RefCell<Seen>>::default());
        let noted = seen.clone();
        backend.set_watcher(Some(Rc::new(move |pass: Pass<'_>| noted.borrow_mut().see(pass, &is_wanted))))?;
        Ok(Watch { backend, seen })
    }

    /// The next step that was watched, once it is read. Never waits: where steps are computed faster than they are read, some
    /// are not watched, so that none is held up.
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

    /// Ends it, and gives the steps that were not told yet: what was begun to be read is waited for, as it holds memory.
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
        // A device that cannot be told runs no steps either.
        let _ = self.backend.set_watcher(None);
    }
}
