//! Autotuning: finds the fastest values of a backend's tunables on this device by running a model with them.

use std::fmt::{self, Display};
use std::rc::Rc;

use model::{ByteSource, Gguf, Host, Model, Recipe};
use serde::Serialize;

use crate::bench::{ModelOptions, time};
use crate::engine::{EngineOptions, Progress};
use crate::error::EngineError;
use crate::ladder::{Candidate, SelectOptions};
use crate::select::select;
use crate::winners::{Values, Winner, set};

/// Least gain that counts, in the product of both times; smaller changes may be noise.
const GAIN: f64 = 0.04;
/// Number of final runs of the winner and the defaults, in turn.
const ROUNDS: usize = 3;

/// One run of the model.
#[derive(Debug, Clone, Serialize)]
pub struct Trial {
    /// Values that differ from the defaults.
    pub values: Values,
    /// *Units*: milliseconds, the median.
    pub prefill_ms: f64,
    /// *Units*: milliseconds, the median.
    pub decode_ms_per_token: f64,
}

impl Trial {
    /// Returns how much longer this run took than another one; prefill and decode count equally.
    fn against(&self, other: &Trial) -> f64 {
        (self.prefill_ms / other.prefill_ms) * (self.decode_ms_per_token / other.decode_ms_per_token)
    }
}

/// Values that were tried, and the fastest ones. Field names are stable: other programs read the JSON.
#[derive(Debug, Clone, Serialize)]
pub struct TuneReport {
    /// The model, as the caller names it.
    pub model: String,
    /// Prompt tokens.
    pub prefill_tokens: usize,
    /// Tokens decoded after it.
    pub decode_tokens: usize,
    /// All runs in order; the first one has the defaults.
    pub trials: Vec<Trial>,
    /// The winner; it has no values if the defaults are best, or if nothing can be tuned.
    pub winner: Winner,
    /// Ratios of the winner's times to those of the defaults, run in turn: prefill and decode.
    pub ratios: Option<[f64; 2]>,
}

struct Tuner<'a> {
    source: &'a dyn ByteSource,
    recipe: &'a dyn Fn() -> Result<Recipe, EngineError>,
    rung: Candidate,
    select: &'a SelectOptions,
    options: &'a ModelOptions,
    host: &'a dyn Host,
    loading: &'a mut dyn FnMut(Progress),
    progress: &'a mut dyn FnMut(&str),
    trials: Vec<Trial>,
}

impl Tuner<'_> {
    async fn run(&mut self, values: &Values) -> Result<Trial, EngineError> {
        let mut backend = self.rung.open(self.select).await?;
        set(&mut *backend, Some(values))?;
        let mut weights = |done, total| (self.loading)(Progress::Weights { done, total });
        let model = Model::load(self.source, (self.recipe)()?, Rc::from(backend), self.host, &mut weights).await?;
        let with = show(values);
        let mut progress = |text: &str| (self.progress)(&format!("{with}: {text}"));
        let timed = time(&Rc::new(model), self.options, self.host, &mut progress).await?;
        let (prefill_ms, decode_ms_per_token) = (timed.prefill_ms.median, timed.decode_ms_per_token.median);
        let trial = Trial { values: values.clone(), prefill_ms, decode_ms_per_token };
        self.trials.push(trial.clone());
        Ok(trial)
    }
}

fn show(values: &Values) -> String {
    let list: Vec<String> = values.iter().map(|(name, value)| format!("{name} {value}")).collect();
    if list.is_empty() { "defaults".into() } else { list.join(", ") }
}

/// Chooses a backend for a model, and runs the model with one value after another of each tunable. Keeps each value
/// that helps; in the end, runs the winner and the defaults in turn. Values change only times, not results.
///
/// *Errors*: as [`bench::run`](crate::bench::run()).
pub async fn tune(
    name: &str,
    source: &dyn ByteSource,
    engine: &EngineOptions,
    options: &ModelOptions,
    host: &dyn Host,
    loading: &mut dyn FnMut(Progress),
    progress: &mut dyn FnMut(&str),
) -> Result<TuneReport, EngineError> {
    let gguf = Gguf::read(source).await?;
    let n_ctx = engine.n_ctx.unwrap_or_else(|| options.n_ctx());
    let recipe = || Ok(Recipe::new(&gguf, Some(n_ctx))?.with_kv_cache(engine.kv_cache));
    progress("choosing a backend");
    let plain = SelectOptions { tuned: Rc::default(), ..engine.select.clone() };
    let (backend, report) = select(Some(&recipe()?), &plain, host).await?;
    let (tunables, defaults, adapter) = (backend.tunables(), backend.tuning(), backend.info().adapter.clone());
    drop(backend);
    let rung = Candidate::named(report.chosen.unwrap_or_default(), &plain).ok_or(EngineError::NoBackend(report))?;
    let mut winner = Winner { rung: rung.name.into(), adapter, values: Values::new() };
    let tunables = tunables.iter().filter(|tunable| tunable.values.len() > 1);
    let (trials, recipe) = (Vec::new(), &recipe);
    let mut tuner = Tuner { source, recipe, rung, select: &plain, options, host, loading, progress, trials };
    let mut best = tuner.run(&winner.values).await?;
    for tunable in tunables {
        let default = defaults.iter().find(|tuned| tuned.name == tunable.name).map(|tuned| tuned.value);
        for value in tunable.values.iter().filter(|value| Some(**value) != default) {
            let mut values = best.values.clone();
            values.insert(tunable.name.into(), *value);
            let trial = tuner.run(&values).await?;
            if trial.against(&best) < 1.0 - GAIN {
                best = trial;
            }
        }
    }
    let mut ratios = None;
    if !best.values.is_empty() {
        let (mut prefill, mut decode) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (default, tuned) = (tuner.run(&Values::new()).await?, tuner.run(&best.values).await?);
            prefill.push(tuned.prefill_ms / default.prefill_ms);
            decode.push(tuned.decode_ms_per_token / default.decode_ms_per_token);
        }
        let found = [prefill, decode].map(|ratios| crate::bench::Spread::of(ratios).median);
        ratios = Some(found);
        if found[0] * found[1] < 1.0 - GAIN {
            winner.values = best.values;
        }
    }
    let (prefill_tokens, decode_tokens) = (options.prefill, options.decode);
    Ok(TuneReport { model: name.into(), prefill_tokens, decode_tokens, trials: tuner.trials, winner, ratios })
}

impl Display for TuneReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Winner { rung, adapter, values } = &self.winner;
        writeln!(f, "{} on {rung} ({adapter}), {} + {} tokens", self.model, self.prefill_tokens, self.decode_tokens)?;
        writeln!(f, "{:>12} {:>16}  with", "prefill ms", "decode ms/token")?;
        for Trial { values, prefill_ms, decode_ms_per_token } in &self.trials {
            writeln!(f, "{prefill_ms:>12.3} {decode_ms_per_token:>16.3}  {}", show(values))?;
        }
        if let Some([prefill, decode]) = self.ratios {
            writeln!(
                f,
                "the best against the defaults, in turn: prefill {prefill:.2}, decode {decode:.2} of the time"
            )?;
        }
        if self.trials.len() == 1 {
            writeln!(f, "{rung} has nothing to tune")
        } else if values.is_empty() {
            writeln!(f, "the defaults are best here")
        } else {
            writeln!(f, "fastest here: {}", show(values))
        }
    }
}
