//! Which values of a backend's tunables are fastest on this device, by running a model with them.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::rc::Rc;

use backend_api::{Backend, Error};
use model::{ByteSource, Gguf, Host, Model, Recipe};
use serde::{Deserialize, Serialize};

use crate::bench::{ModelOptions, time};
use crate::error::EngineError;
use crate::ladder::Candidate;
use crate::select::select;
use crate::{EngineOptions, Progress, SelectOptions};

/// Least gain of a change, in the product of both times, that is more than noise.
const GAIN: f64 = 0.04;
/// How often the winner and the defaults are run again in turn before the winner is believed.
const ROUNDS: usize = 3;

/// Values of tunables by their names; all others have their defaults.
pub type Values = BTreeMap<String, usize>;

/// Fastest values of one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Winner {
    /// The rung of the ladder.
    pub rung: String,
    /// The device and driver as they name themselves.
    pub adapter: String,
    /// Only those that differ from the defaults.
    pub values: Values,
}

/// Fastest values of the devices that were tuned. Files keep them as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Winners(Vec<Winner>);

impl Winners {
    /// Adds one in place of what was known of its device. One without values is forgotten: the defaults are best.
    pub fn add(&mut self, winner: Winner) {
        self.0.retain(|known| (&known.rung, &known.adapter) != (&winner.rung, &winner.adapter));
        if !winner.values.is_empty() {
            self.0.push(winner);
        }
    }

    /// Gives a backend that was just opened what was fastest on its device.
    ///
    /// *Errors*: a value that this version does not know. The backend then has its defaults.
    pub(crate) fn apply(&self, rung: &str, backend: &mut dyn Backend) -> Result<(), Error> {
        let adapter = &backend.info().adapter;
        let found = self.0.iter().find(|known| known.rung == rung && known.adapter == *adapter);
        let defaults = backend.tuning();
        let set = set(backend, found.map(|winner| &winner.values));
        if set.is_err() {
            // What cannot be set was not changed either.
            defaults.iter().for_each(|default| drop(backend.tune(default.name, default.value)));
        }
        set
    }
}

fn set(backend: &mut dyn Backend, values: Option<&Values>) -> Result<(), Error> {
    values.into_iter().flatten().try_for_each(|(name, value)| backend.tune(name, *value))
}

/// One run.
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
    /// How much longer than another one; both halves count alike.
    fn against(&self, other: &Trial) -> f64 {
        (self.prefill_ms / other.prefill_ms) * (self.decode_ms_per_token / other.decode_ms_per_token)
    }
}

/// Values that were tried, and the fastest ones. Field names are a contract: others read the JSON.
#[derive(Debug, Clone, Serialize)]
pub struct TuneReport {
    /// The model, as the caller names it.
    pub model: String,
    /// Tokens of the prompt.
    pub prefill_tokens: usize,
    /// Tokens decoded after it.
    pub decode_tokens: usize,
    /// All runs in their order; the first has the defaults.
    pub trials: Vec<Trial>,
    /// The winner; without values if the defaults are best, or nothing can be tuned.
    pub winner: Winner,
    /// The winner's times over those of the defaults, run in turn: prefill and decode.
    pub ratios: Option<[f64; 2]>,
}

struct Tuner<'a> {
    source: &'a dyn ByteSource,
    recipe: &'a dyn Fn() -> Result<Recipe, EngineError>,
    rung: &'static Candidate,
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

/// Runs a model with one value after another of each tunable of the backend that is chosen for it, keeps what helps, and
/// in the end runs the winner and the defaults in turn. Results are the same with all values; only times differ.
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
    let rung = Candidate::named(report.chosen.unwrap_or_default()).ok_or(EngineError::NoBackend(report))?;
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
