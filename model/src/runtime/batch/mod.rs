//! Continuous batching: several sequences advance by one token in the same step, so that weights are read once for all
//! of them.
//!
//! Each sequence has a [`Session`] of its own, which generates like any other. Sessions of a batch whose futures are
//! polled together wait for each other before each token. Batching is bit-exact: a sequence's output does not depend on
//! the others in its batch.

mod sessions;

pub use sessions::{SessionInfo, Sessions};

use std::rc::Rc;

use backend_api::run::Host;
use backend_api::{Backend, StepParams};

use crate::arch::{ALIGNED, Head, Recipe};
use crate::error::ModelError;
use crate::runtime::load::{self, Model, Storages, no_storage};
use crate::runtime::scheduler::{Compiled, SPARE, Scheduler, Seat};
use crate::runtime::session::{Session, Trace, TracedKernel};

/// Sessions that can advance together.
pub struct Batch {
    // Views are dropped before the storages that they refer to.
    sessions: Vec<Session>,
    scheduler: Rc<Scheduler>,
}

impl Batch {
    /// Makes so many empty sessions, each with room for the whole context.
    ///
    /// *Errors*: as [`Self::with_room`].
    pub fn new(model: Rc<Model>, sequences: usize) -> Result<Batch, ModelError> {
        let n_ctx = model.recipe().sizes().n_ctx;
        Batch::with_room(model, sequences, n_ctx)
    }

    /// Makes so many empty sessions, each with [room](Session::room) for texts of at least so many tokens. A run of a longer
    /// text [is out of room](crate::Run::is_out_of_room), and goes on in a session that has more.
    ///
    /// *Errors*: fewer than two, or more than the backend's [`batch_rows`](backend_api::BackendInfo::batch_rows); an
    /// embedding model; recurrent states so small that a device cannot bind those of a sequence; memory, or the device was
    /// lost.
    pub fn with_room(model: Rc<Model>, sequences: usize, tokens: usize) -> Result<Batch, ModelError> {
        let (info, recipe) = (model.backend().info(), model.recipe());
        if sequences < 2 || sequences > info.batch_rows {
            let (name, most) = (info.name, info.batch_rows);
            let why = format!("{sequences} texts cannot advance together on {name}: it takes 2 to {most}");
            return Err(ModelError::Options(why));
        }
        let capacity = capacity(recipe, tokens);
        let own = capacity.min(recipe.sizes().n_ctx);
        let each = recipe.states_for(own)?;
        let specs = recipe.states_of_sequences(capacity, sequences)?;
        // Unsupported models are refused before memory is allocated.
        model.backend().plan(recipe.graph_of_sequences(2, Head::SAMPLE, capacity, sequences)?)?;
        let mut states = Storages::new(model.backend().clone());
        specs.iter().try_for_each(|spec| states.create(&load::tensor(spec)?).map(|_| ()))?;
        let scheduler = Rc::new(Scheduler::new(model.clone(), states, capacity, sequences));
        let session = |sequence: usize| {
            let mut views = Storages::new(model.backend().clone());
            for (spec, all) in each.iter().zip(&specs) {
                let whole = scheduler.state(&spec.name).ok_or_else(|| no_storage(&spec.name))?;
                let [rows, apart] = [spec, all].map(|spec| spec.shape.first().copied().unwrap_or(0));
                let apart = apart / sequences;
                views.insert(spec.name.clone(), model.backend().view(whole, sequence * apart, rows)?);
            }
            Session::with_states(model.clone(), views, own, Some(Seat::new(scheduler.clone(), sequence)))
        };
        let sessions = (0..sequences).map(session).collect::<Result<_, ModelError>>()?;
        Ok(Batch { sessions, scheduler })
    }

    /// Returns the device memory that a session of a batch takes.
    ///
    /// *Units*: bytes.
    ///
    /// *Errors*: as [`Model::footprint`].
    pub fn bytes_of_session(recipe: &Recipe, backend: &dyn Backend, tokens: usize) -> Result<u64, ModelError> {
        Ok(Model::footprint_for(recipe, backend, capacity(recipe, tokens))?.states)
    }

    /// Returns the sessions.
    pub fn sessions_mut(&mut self) -> &mut [Session] {
        &mut self.sessions
    }

    /// Returns the sessions as a list. They still advance together.
    pub fn into_sessions(self) -> Vec<Session> {
        self.sessions
    }

    /// Runs a step at the ends of all sequences, and returns its kernels, each with the device's time. Without a clock
    /// nothing is run.
    ///
    /// *Errors*: shader or driver errors, memory, the device was lost; a context is full.
    pub async fn trace(&mut self, host: &dyn Host) -> Result<Vec<TracedKernel>, ModelError> {
        let at = |(sequence, session): (usize, &Session)| StepParams {
            sequence: sequence as u32,
            ..StepParams::at(session.position() as u32, 1)
        };
        let runs: Vec<StepParams> = self.sessions.iter().enumerate().map(at).collect();
        let begin = |compiled: &mut Compiled| Trace::begin(&mut *compiled.program, &runs);
        let trace = self.scheduler.with_program(runs.len(), Head::GREEDY, begin)?;
        trace.finish(host).await
    }

    /// Returns the number of batched steps so far, and the sum of their rows.
    pub fn steps(&self) -> (u64, u64) {
        self.scheduler.taken()
    }
}

/// Returns the positions of a session with room for texts of so many tokens.
fn capacity(recipe: &Recipe, tokens: usize) -> usize {
    tokens.saturating_add(SPARE).min(recipe.sizes().n_ctx).next_multiple_of(ALIGNED)
}
