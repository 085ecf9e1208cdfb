//! Measurements of single steps: their kernels, phases and memory.

use std::rc::Rc;

use backend_api::Held;
use model::{GenerateOptions, Host, Model, ModelError, Session, StepTimes, TracedKernel};
use serde::Serialize;

use super::model::{ModelOptions, fill, prompt};
use super::{RoleTime, Spread, profile};
use crate::error::EngineError;

/// Phases of a decode step that runs alone, medians, and how busy decoding keeps the device.
///
/// *Source*: after the breakdown of WeInfer (Z. Chen et al., WWW 2025).
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Phases {
    /// Time until the host has encoded and submitted the step, in milliseconds; 0 on a device that computes in the call.
    pub encode_ms: f64,
    /// From there until the device has done it.
    pub queue_ms: f64,
    /// From there until its token is read.
    pub fetch_ms: f64,
    /// Part of a token's time in which the device works, where steps follow each other: the sum of the times of its kernels,
    /// or of [`Self::queue_ms`] without a clock, over the median time of a token; at most 1.
    pub utilisation: f64,
}

/// Buffers (or textures) of one class.
#[derive(Debug, Clone, Serialize)]
pub struct Buffers {
    /// `weights`, `states`, or a [class](Held::class) of programs' memory.
    pub class: &'static str,
    /// Number of them.
    pub count: usize,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl Buffers {
    /// Returns the classes of a session's memory.
    ///
    /// *Errors*: those of [`Session::held`].
    pub fn of(session: &Session) -> Result<Vec<Buffers>, ModelError> {
        let of = |Held { class, count, bytes }| Buffers { class, count, bytes };
        Ok(session.held()?.into_iter().map(of).collect())
    }
}

/// Kernels by role.
#[derive(Debug, Clone, Serialize)]
pub struct Roles {
    /// Those of the prompt.
    pub prefill: Vec<RoleTime>,
    /// Those of a decode step.
    pub decode: Vec<RoleTime>,
}

/// Measurements of the steps of a prompt and of decoding, one by one.
pub(super) struct Traces {
    pub(super) prefill: Vec<TracedKernel>,
    pub(super) decode: Vec<TracedKernel>,
    /// Times of decode steps that ran alone.
    alone: [Spread; 3],
    pub(super) buffers: Vec<Buffers>,
}

impl Traces {
    /// Number of decode steps that are timed by phase.
    const STEPS: usize = 15;

    pub(super) async fn of(
        model: &Rc<Model>,
        options: &ModelOptions,
        host: &dyn Host,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Traces, EngineError> {
        progress("timing kernels");
        let mut session = Session::new(model.clone())?;
        fill(&mut session, options, host).await?;
        let prompt = prompt(options.prefill, model.recipe().sizes().n_vocab);
        let prefill = profile(host, async || session.trace(&prompt, host).await).await?;
        // Decoding is traced where it begins.
        let generate = GenerateOptions { max_tokens: Some(1), ..options.generate(model) };
        session.generate(&prompt, &generate, None, host, &mut |_| {}).await?;
        let decode = profile(host, async || session.trace(&[], host).await).await?;
        progress("timing steps by phase");
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..Self::STEPS {
            let StepTimes { encode_ms, queue_ms, fetch_ms } = session.time_step(host).await?;
            times.iter_mut().zip([encode_ms, queue_ms, fetch_ms]).for_each(|(times, ms)| times.push(ms));
        }
        Ok(Traces { prefill, decode, alone: times.map(Spread::of), buffers: Buffers::of(&session)? })
    }

    pub(super) fn phases(&self, ms_per_token: f64) -> Phases {
        let [encode_ms, queue_ms, fetch_ms] = self.alone.map(|times| times.median);
        let kernels: Option<f64> = self.decode.iter().map(|kernel| kernel.ms).sum();
        let busy = kernels.unwrap_or(queue_ms);
        let utilisation = if ms_per_token > 0.0 { (busy / ms_per_token).min(1.0) } else { 0.0 };
        Phases { encode_ms, queue_ms, fetch_ms, utilisation }
    }
}
