//! Traces: the kernels of steps with the device's times of them, a step's time by phase, and the memory behind it.

use backend_api::run::{Host, finish_profile, read_rows};
use backend_api::{Held, KernelInfo, Profile, Program, StepParams};

use super::Session;
use crate::arch::Head;
use crate::error::ModelError;

/// A kernel of a step that was traced.
#[derive(Debug, Clone)]
pub struct TracedKernel {
    /// Its description.
    pub info: KernelInfo,
    /// The step that it belongs to.
    pub step: StepParams,
    /// Its time on the device, in milliseconds; nothing if the device has no clock for kernels.
    pub ms: Option<f64>,
}

impl TracedKernel {
    /// Bytes that it reads and writes in its step.
    pub fn bytes(&self) -> u64 {
        self.info.traffic.of(&self.step)
    }
}

/// Time of a decode step that runs alone, by phase.
///
/// *Units*: milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepTimes {
    /// Until the host has encoded and submitted it. 0 on a device that computes in the call.
    pub encode_ms: f64,
    /// From there until the device has done it.
    pub queue_ms: f64,
    /// From there until its token is read.
    pub fetch_ms: f64,
}

/// A step that is being traced.
pub(crate) struct Trace {
    kernels: Vec<KernelInfo>,
    /// Of several sequences, the step of the one that is furthest.
    step: StepParams,
    profile: Option<Box<dyn Profile>>,
}

impl Trace {
    /// Runs a step of a program with the device's clock, if it has one.
    pub fn begin(program: &mut dyn Program, runs: &[StepParams]) -> Result<Trace, ModelError> {
        let furthest = runs.iter().max_by_key(|params| params.position);
        let step = furthest.copied().unwrap_or(StepParams::at(0, 1));
        Ok(Trace { kernels: program.kernels(), step, profile: program.profile(runs)? })
    }

    /// Waits for the times.
    pub async fn finish(self, host: &dyn Host) -> Result<Vec<TracedKernel>, ModelError> {
        let times = match self.profile {
            Some(profile) => finish_profile(profile, host).await?.into_iter().map(Some).collect(),
            None => vec![None; self.kernels.len()],
        };
        let step = self.step;
        Ok(self.kernels.into_iter().zip(times).map(|(info, ms)| TracedKernel { info, step, ms }).collect())
    }
}

impl Session {
    /// Runs the steps that compute a prompt at the end of the text, or a decode step if the prompt is empty, and returns
    /// their kernels, each with the device's time. Without a clock nothing is run. The text stays as it is.
    ///
    /// *Errors*: the context is full; unknown tokens; as [`Self::prepare`]; the device was lost.
    pub async fn trace(&mut self, prompt: &[u32], host: &dyn Host) -> Result<Vec<TracedKernel>, ModelError> {
        let mut steps = vec![(1, 1)];
        if !prompt.is_empty() {
            steps = self.prefill_steps(prompt, 0, Head::GREEDY, host).await?.steps.into();
        }
        let (mut at, last) = (self.position(), steps.len() - 1);
        let end = at + steps.iter().map(|(_, rows)| rows).sum::<usize>();
        self.reserve(end, at, host).await?;
        self.rewritten.moved_to(end);
        let mut kernels = Vec::new();
        for (i, (bucket, rows)) in steps.into_iter().enumerate() {
            let head = if i == last { Head::GREEDY } else { Head::NONE };
            self.prepare(bucket, head)?;
            let Some(compiled) = self.programs.get_mut(&(bucket, head)) else { continue };
            let params = StepParams::at(at as u32, rows as u32);
            kernels.extend(Trace::begin(&mut *compiled.program, &[params])?.finish(host).await?);
            at += rows;
        }
        Ok(kernels)
    }

    /// Runs a decode step at the end of the text, alone on the device, and times its phases. The text stays as it is.
    ///
    /// *Errors*: as [`Self::trace`].
    pub async fn time_step(&mut self, host: &dyn Host) -> Result<StepTimes, ModelError> {
        let at = self.position();
        self.reserve(at + 1, at, host).await?;
        self.prepare(1, Head::GREEDY)?;
        self.rewritten.moved_to(at + 1);
        self.settle(host).await?;
        let (model, history) = (self.model.clone(), self.history()?);
        let backend = &**model.backend();
        let start = host.now_ms();
        if let Some(compiled) = self.programs.get_mut(&(1, Head::GREEDY)) {
            compiled.program.step(&StepParams::at(at as u32, 1))?;
        }
        // A backend may hold a step back until somebody asks for it.
        let mut is_idle = backend.idle()?;
        let submitted = host.now_ms();
        while !is_idle {
            host.turn().await;
            is_idle = backend.idle()?;
        }
        let done = host.now_ms();
        read_rows(backend, history, 0, 1, &mut [0; 4], host).await?;
        let fetched = host.now_ms();
        let encoded = if backend.info().synchronous { start } else { submitted };
        Ok(StepTimes { encode_ms: encoded - start, queue_ms: done - encoded, fetch_ms: fetched - done })
    }

    /// Returns the buffers (or textures) of the model, of this text and of its programs by class. What the device holds
    /// besides is staging memory, inputs and outputs.
    ///
    /// *Errors*: as [`Model::footprint`](crate::Model::footprint).
    pub fn held(&self) -> Result<Vec<Held>, ModelError> {
        let (recipe, footprint) = (self.model.recipe(), self.footprint()?);
        let states = recipe.states_for(self.capacity)?.len();
        let mut held = vec![
            Held { class: "weights", count: recipe.weights().len(), bytes: footprint.weights },
            Held { class: "states", count: states, bytes: footprint.states },
        ];
        for of_program in self.programs.values().flat_map(|compiled| compiled.program.held()) {
            match held.iter_mut().find(|held| held.class == of_program.class) {
                Some(held) => (held.count, held.bytes) = (held.count + of_program.count, held.bytes + of_program.bytes),
                None => held.push(of_program),
            }
        }
        held.retain(|held| held.count > 0);
        backend_api::sort_by_key(&mut held, |held| u64::MAX - held.bytes);
        Ok(held)
    }
}
