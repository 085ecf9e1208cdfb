//! What the kernels of a step make, for who wants to see a model at work.

use std::cell::RefCell;
use std::rc::Rc;

use backend_api::run::{Host, finish_read};
use backend_api::{Backend, Error, KernelInfo, Made, Pass, ReadId};

use crate::{Engine, EngineError};

/// A step that was watched: one that computed a single token.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchedStep {
    /// The position of its token in the text.
    pub position: usize,
    /// What its kernels made, in order.
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
    state: Rc<RefCell<State>>,
}

/// The step that is being watched.
#[derive(Default)]
struct State {
    step: Option<WatchedStep>,
    /// Those of its matrices that are not read yet, by their place.
    reads: Vec<(usize, ReadId)>,
    is_whole: bool,
    failed: Option<Error>,
}

impl State {
    /// Takes note of a kernel.
    fn see(&mut self, pass: &mut dyn Pass, is_wanted: &dyn Fn(&KernelInfo, &Made) -> bool) {
        if pass.kernel() == 0 && pass.params().rows == 1 && self.step.is_none() {
            self.step = Some(WatchedStep { position: pass.params().position as usize, matrices: Vec::new() });
        }
        let Some(step) = self.step.as_mut().filter(|_| !self.is_whole) else { return };
        for at in 0..pass.info().made.len() {
            let (info, made) = (pass.info(), &pass.info().made[at]);
            if !is_wanted(info, made) {
                continue;
            }
            let (kernel, subject, made) = (info.name.clone(), info.subject.clone(), made.clone());
            match pass.read(at) {
                Ok(read) => self.reads.push((step.matrices.len(), read)),
                Err(error) => self.failed = Some(error),
            }
            let values = vec![0.0; made.rows * made.cols];
            step.matrices.push(WatchedMatrix { kernel, subject, made, values });
        }
        self.is_whole = pass.kernel() + 1 == pass.kernels();
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
        let (backend, state) = (engine.model().backend().clone(), Rc::<RefCell<State>>::default());
        let seen = state.clone();
        backend.set_watcher(Some(Rc::new(move |pass: &mut dyn Pass| seen.borrow_mut().see(pass, &is_wanted))))?;
        Ok(Watch { backend, state })
    }

    /// The step that was watched last, once it is read. Never waits: steps that run before are not watched, so that a slow
    /// device is not held up.
    ///
    /// *Errors*: the device was lost.
    pub fn step(&self) -> Result<Option<WatchedStep>, EngineError> {
        let state = &mut *self.state.borrow_mut();
        if let Some(error) = state.failed.take() {
            return Err(error.into());
        }
        let Some(step) = state.step.as_mut().filter(|_| state.is_whole) else { return Ok(None) };
        while let Some((at, read)) = state.reads.last() {
            if !self.backend.try_read(*read, bytemuck::cast_slice_mut(&mut step.matrices[*at].values))? {
                return Ok(None);
            }
            state.reads.pop();
        }
        state.is_whole = false;
        Ok(state.step.take())
    }

    /// Ends it: what was begun to be read is waited for, as it holds memory.
    ///
    /// *Errors*: the device was lost.
    pub async fn end(self, host: &dyn Host) -> Result<(), EngineError> {
        self.backend.set_watcher(None)?;
        let State { step, reads, .. } = self.state.take();
        let mut matrices = step.map(|step| step.matrices).unwrap_or_default();
        for (at, read) in reads {
            let values = bytemuck::cast_slice_mut(&mut matrices[at].values);
            finish_read(&*self.backend, read, values, host).await?;
        }
        Ok(())
    }
}
