//! Benchmark of batching: several sequences that advance together, compared with a single one.

use std::fmt::{self, Display, Formatter};
use std::rc::Rc;

use backend_api::run::{Local, join};
use model::{Batch, ByteSource, GenerateOptions, Host, Session};
use serde::Serialize;

use super::model::{prompt, rate};
use super::profile::by_kernel;
use super::{KernelTime, ModelOptions, Spread, profile};
use crate::engine::fetch_interval;
use crate::error::EngineError;
use crate::{Engine, EngineOptions, Progress};

/// Results of batching. Field names are stable: other programs read the JSON.
#[derive(Debug, Clone, Serialize)]
pub struct TogetherReport {
    /// The kind of backend.
    pub backend: &'static str,
    /// The device.
    pub adapter: String,
    /// The model, as the caller names it.
    pub model: String,
    /// Prompt tokens of each sequence, which were computed before the measurement.
    pub prefill_tokens: usize,
    /// Tokens decoded after it.
    pub decode_tokens: usize,
    /// Sequences in the batch.
    pub conversations: usize,
    /// Times of all tokens of a single sequence.
    pub one_ms: Spread,
    /// Times of all tokens of all sequences.
    pub together_ms: Spread,
    /// Speed of a single sequence, from the median.
    pub one_tokens_per_s: f64,
    /// Speed of all sequences together, from the median.
    pub together_tokens_per_s: f64,
    /// Ratio of the speed of the batch to that of a single sequence.
    pub ratio: f64,
    /// Mean number of sequences that a step advanced.
    pub rows_per_step: f64,
    /// Kernels of a step of all sequences, each timed separately by the device's clock; null if it does not have one.
    pub profile: Option<Vec<KernelTime>>,
    /// Memory that is allocated on the device.
    pub device_memory_bytes: u64,
}

/// Measures a batch of so many sequences and a single sequence, in turn.
///
/// *Errors*: as [`super::run`]; a backend or model that cannot batch so many sequences.
#[expect(clippy::too_many_arguments, reason = "as its siblings, and how many texts")]
pub async fn together(
    name: &str,
    source: &dyn ByteSource,
    engine: &EngineOptions,
    options: &ModelOptions,
    conversations: usize,
    host: Rc<dyn Host>,
    loading: &mut dyn FnMut(Progress),
    progress: &mut dyn FnMut(&str),
) -> Result<TogetherReport, EngineError> {
    let engine = Engine::load(source, engine, host.clone(), loading).await?;
    let (model, backend) = (engine.model().clone(), engine.backend());
    options.check(model.recipe().sizes())?;
    let generate = GenerateOptions {
        max_tokens: Some(options.decode),
        stop_tokens: Some(Vec::new()),
        fetch_interval: options.fetch_interval.or_else(|| fetch_interval(backend)),
        draft_max: Some(0),
        ..GenerateOptions::default()
    };
    let n_vocab = model.recipe().sizes().n_vocab;
    progress("compiling");
    let mut alone = Session::new(model.clone())?;
    let mut batch = Batch::new(model.clone(), conversations)?;
    let (mut one_ms, mut together_ms, mut steps) = (Vec::new(), Vec::new(), (0, 0));
    for run in 0..=options.repeat {
        progress(&format!("run {run} of {}", options.repeat));
        let prompt = prompt(options.prefill, n_vocab);
        let start = host.now_ms();
        alone.generate_after(&prompt, &generate, None, &*host, &mut |_| {}).await?;
        let one = host.now_ms() - start;
        let before = batch.steps();
        let start = host.now_ms();
        let (generate, host) = (&generate, &*host);
        let text = async |session: &mut Session, id: usize| -> Result<(), EngineError> {
            // The sequences differ in the last token of the prompt.
            let mut text = prompt.clone();
            text.iter_mut().rev().take(1).for_each(|last| *last = (*last + id as u32) % n_vocab as u32);
            session.generate_after(&text, generate, None, host, &mut |_| {}).await?;
            Ok(())
        };
        let text = &text;
        let sessions = batch.sessions_mut().iter_mut().enumerate();
        let all = sessions.map(|(id, session)| -> Local<'_, _> { Box::pin(text(session, id)) }).collect();
        join(all).await.into_iter().collect::<Result<(), EngineError>>()?;
        let all = host.now_ms() - start;
        // The first run compiles and computes the prompts.
        if run > 0 {
            one_ms.push(one);
            together_ms.push(all);
            let (taken, rows) = batch.steps();
            steps = (steps.0 + taken - before.0, steps.1 + rows - before.1);
        }
    }
    progress("timing kernels");
    let profile = by_kernel(&profile(&*host, async || batch.trace(&*host).await).await?);
    let (one_ms, together_ms) = (Spread::of(one_ms), Spread::of(together_ms));
    let one_tokens_per_s = rate(options.decode as f64, one_ms.median);
    let together_tokens_per_s = rate((conversations * options.decode) as f64, together_ms.median);
    Ok(TogetherReport {
        backend: backend.info().name,
        adapter: backend.info().adapter.clone(),
        model: name.into(),
        prefill_tokens: options.prefill,
        decode_tokens: options.decode,
        conversations,
        one_ms,
        together_ms,
        one_tokens_per_s,
        together_tokens_per_s,
        ratio: together_tokens_per_s / one_tokens_per_s.max(f64::MIN_POSITIVE),
        rows_per_step: steps.1 as f64 / (steps.0 as f64).max(1.0),
        profile,
        device_memory_bytes: backend.stats().memory,
    })
}

impl Display for TogetherReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let TogetherReport { model, backend, adapter, conversations, decode_tokens, prefill_tokens, .. } = self;
        writeln!(f, "{model} on {backend} ({adapter}), {decode_tokens} tokens after {prefill_tokens}")?;
        writeln!(f, "one text     {}, {:.1} tokens/s", self.one_ms, self.one_tokens_per_s)?;
        writeln!(
            f,
            "{conversations:<2} together  {}, {:.1} tokens/s: {:.2} times as many, {:.1} texts a step",
            self.together_ms, self.together_tokens_per_s, self.ratio, self.rows_per_step
        )?;
        writeln!(f, "memory       {:.1} MiB on the device", self.device_memory_bytes as f64 / f64::from(1 << 20))
    }
}
