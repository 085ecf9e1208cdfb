//! A model, timed: from the file to the first token in parts, then prefill and decode several times over.

use std::rc::Rc;

use backend_api::{Backend, DType, Graph, Kind, Op, Stats, Update};
use model::{ByteSource, GenerateOptions, Head, Host, Model, ModelError, Session, Sizes};
use serde::Serialize;

use super::profile::by_kernel;
use super::{Floors, KernelTime, Spread, floors, profile};
use crate::engine::fetch_interval;
use crate::error::EngineError;
use crate::{Engine, EngineOptions, Progress};

/// Measurements to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelOptions {
    /// Tokens of the prompt: also the depth at which decoding begins.
    pub prefill: usize,
    /// Tokens to decode after it.
    pub decode: usize,
    /// Measurements, after a first one that is not counted.
    pub repeat: usize,
    /// Decode steps under way between two reads; by default what suits the backend.
    pub fetch_interval: Option<usize>,
}

impl Default for ModelOptions {
    fn default() -> ModelOptions {
        ModelOptions { prefill: 128, decode: 64, repeat: 5, fetch_interval: None }
    }
}

impl ModelOptions {
    /// Tokens that the context must hold.
    pub fn n_ctx(&self) -> usize {
        self.prefill.saturating_add(self.decode).saturating_add(1)
    }

    fn check_counts(&self) -> Result<(), EngineError> {
        if self.prefill == 0 || self.decode == 0 || self.repeat == 0 {
            return Err(refused("prefill, decode and repeat must be at least 1"));
        }
        Ok(())
    }

    /// Refuses what makes no sense, or does not fit the context.
    pub(super) fn check(&self, sizes: &Sizes) -> Result<(), EngineError> {
        self.check_counts()?;
        if sizes.n_ctx < self.n_ctx() {
            let (need, have) = (self.n_ctx(), sizes.n_ctx);
            return Err(refused(&format!(
                "the context of {have} is too short for {} + {} tokens; use smaller numbers or a context of {need}",
                self.prefill, self.decode
            )));
        }
        Ok(())
    }
}

fn refused(why: &str) -> EngineError {
    ModelError::Options(why.into()).into()
}

/// The time to the first token of a program that was just started, in parts.
///
/// *Units*: milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct FirstToken {
    /// Reading the file's header, and choosing the backend: opening, testing and timing candidates.
    pub open_ms: f64,
    /// Bringing the weights to the device.
    pub load_ms: f64,
    /// Making the programs of the prompt and of a decode step.
    pub compile_ms: f64,
    /// From the prompt to its first token, with programs that never ran.
    pub prefill_ms: f64,
    /// All of these.
    pub total_ms: f64,
}

/// Counters of steady decoding; null where too few tokens came to tell.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct PerToken {
    /// Dispatches, or draws.
    pub dispatches_per_token: Option<f64>,
    /// Submissions of encoded work.
    pub submits_per_token: Option<f64>,
    /// GPU objects made.
    pub gpu_objects_per_token: Option<f64>,
    /// Bytes to the device.
    pub upload_bytes_per_token: Option<f64>,
    /// Bytes from the device.
    pub readback_bytes_per_token: Option<f64>,
}

impl PerToken {
    fn of(steps: usize, steady: Stats) -> PerToken {
        let rate = |count: u64| (steps > 0).then(|| count as f64 / steps as f64);
        PerToken {
            dispatches_per_token: rate(steady.dispatches),
            submits_per_token: rate(steady.submits),
            gpu_objects_per_token: rate(steady.objects),
            upload_bytes_per_token: rate(steady.uploaded),
            readback_bytes_per_token: rate(steady.read_back),
        }
    }
}

/// How near decoding comes to the device's floors.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DecodeFloor {
    /// Bytes of weights that a step reads: those of its matmuls.
    pub weight_bytes: u64,
    /// Bytes of cached keys and values that a step reads, in the middle of the tokens decoded, and of states that it
    /// rewrites.
    pub cache_bytes: u64,
    /// The least time of reading these.
    pub read_ms: f64,
    /// The least time of the dispatches or draws.
    pub dispatch_ms: f64,
    /// Both.
    pub floor_ms: f64,
    /// The floor over what a token really takes: 1 is as fast as it can be.
    pub fraction: f64,
}

impl DecodeFloor {
    fn of(floors: &Floors, work: Work, kernels: usize, position: usize, ms_per_token: f64) -> DecodeFloor {
        let cache_bytes = work.cache_bytes_per_position * position as u64 + work.rewritten_bytes;
        let read_ms = floors.read_ms((work.weight_bytes + cache_bytes) as f64);
        let dispatch_ms = floors.dispatch_ms(kernels as f64);
        let floor_ms = read_ms + dispatch_ms;
        let fraction = if ms_per_token > 0.0 { floor_ms / ms_per_token } else { 0.0 };
        DecodeFloor { weight_bytes: work.weight_bytes, cache_bytes, read_ms, dispatch_ms, floor_ms, fraction }
    }
}

/// Bytes and operations of a decode step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Work {
    weight_bytes: u64,
    cache_bytes_per_position: u64,
    /// Bytes of states that a step reads and writes as a whole.
    rewritten_bytes: u64,
}

impl Work {
    /// Counts the work of the graph of a decode step. All packed weights are read as a whole, but for those that rows
    /// are looked up in, and of experts those that a token goes to.
    fn of(graph: &Graph) -> Result<Work, backend_api::Error> {
        let (mut weight_bytes, mut cache_bytes_per_position, mut rewritten_bytes) = (0, 0, 0);
        for node in graph.nodes().iter().filter(|node| !matches!(node.op, Op::GetRows(_))) {
            for tensor in graph.operands(node) {
                if let DType::Packed(format) = tensor.dtype {
                    let (read, of) = graph.experts_read(node).unwrap_or((1, 1));
                    let bytes = (format.row_bytes(tensor.shape.cols())? * tensor.shape.rows()) as u64;
                    weight_bytes += bytes / of as u64 * read as u64;
                }
            }
        }
        for (_, tensor) in graph.externals().filter(|(_, tensor)| tensor.shape.rank() == 2) {
            let row = tensor.dtype.row_bytes(tensor.shape.cols())? as u64;
            match tensor.kind {
                Kind::State(Update::Append) => cache_bytes_per_position += row,
                Kind::State(Update::Replace) => rewritten_bytes += 2 * row * tensor.shape.rows() as u64,
                _ => {}
            }
        }
        Ok(Work { weight_bytes, cache_bytes_per_position, rewritten_bytes })
    }
}

/// Results of a model. Field names are a contract: others read the JSON.
#[derive(Debug, Clone, Serialize)]
pub struct ModelReport {
    /// The kind of backend.
    pub backend: &'static str,
    /// The device.
    pub adapter: String,
    /// The model, as the caller names it.
    pub model: String,
    /// Tokens of the prompt.
    pub prefill_tokens: usize,
    /// Tokens decoded after it.
    pub decode_tokens: usize,
    /// Decode steps under way between two reads; null where the device's speed decides.
    pub fetch_interval: Option<usize>,
    /// Bringing the weights to the device.
    pub load_ms: f64,
    /// Compiling, and the run that is not counted.
    pub warm_up_ms: f64,
    /// The time to the first token.
    pub first_token: FirstToken,
    /// From the prompt to its first token.
    pub prefill_ms: Spread,
    /// From the median.
    pub prefill_tokens_per_s: f64,
    /// From one token to the next.
    pub decode_ms_per_token: Spread,
    /// From the median.
    pub decode_tokens_per_s: f64,
    /// Counts of a token.
    pub stats: PerToken,
    /// Memory that the device holds.
    pub device_memory_bytes: u64,
    /// The floors of the device.
    pub floors: Floors,
    /// How near decoding comes to them.
    pub decode_floor: DecodeFloor,
    /// The kernels of a decode step, each timed apart by the device's own clock; null where it has none.
    pub profile: Option<Vec<KernelTime>>,
}

/// Prefill and decode of one model on one backend.
#[derive(Debug, Clone)]
pub(crate) struct Timed {
    pub fetch_interval: Option<usize>,
    /// Dispatches or draws of a decode step.
    pub kernels: usize,
    pub compile_ms: f64,
    pub first_prefill_ms: f64,
    pub warm_up_ms: f64,
    pub prefill_ms: Spread,
    pub decode_ms_per_token: Spread,
    pub stats: PerToken,
    pub memory: u64,
    pub profile: Option<Vec<KernelTime>>,
}

/// Times a loaded model.
///
/// *Errors*: options that make no sense, or do not fit the context; what the backend returns.
pub(crate) async fn time(
    model: &Rc<Model>,
    options: &ModelOptions,
    host: &dyn Host,
    progress: &mut dyn FnMut(&str),
) -> Result<Timed, EngineError> {
    options.check(model.recipe().sizes())?;
    let prompt = prompt(options.prefill, model.recipe().sizes().n_vocab);
    let fetch_interval = options.fetch_interval.or_else(|| fetch_interval(&**model.backend()));
    // One token more: the first comes with the prefill.
    let generate = GenerateOptions {
        max_tokens: Some(options.decode + 1),
        stop_tokens: Some(Vec::new()),
        fetch_interval,
        // Each token takes a step of its own.
        draft_max: Some(0),
        ..GenerateOptions::default()
    };

    progress("compiling");
    let start = host.now_ms();
    let mut session = Session::new(model.clone())?;
    session.prepare_prompt(options.prefill, Head::Greedy)?;
    session.settle(host).await?;
    let compile_ms = host.now_ms() - start;
    let kernels = session.decode_kernels()?;

    let (mut prefill, mut decode) = (Vec::new(), Vec::new());
    let mut warm_up = None;
    loop {
        let run = prefill.len();
        let mut made = 0;
        session.rewind(0);
        let mut told = |_: model::Piece<'_>| {
            made += 1;
            progress(&format!("run {run} of {}: token {made} of {}", options.repeat, options.decode));
        };
        let generation = session.generate(&prompt, &generate, None, host, &mut told).await?;
        let Some((first_prefill_ms, warm_up_ms)) = warm_up else {
            let decode_ms = generation.decode_ms_per_token * options.decode as f64;
            warm_up = Some((generation.prefill_ms, compile_ms + generation.prefill_ms + decode_ms));
            continue;
        };
        prefill.push(generation.prefill_ms);
        decode.push(generation.decode_ms_per_token);
        if prefill.len() < options.repeat {
            continue;
        }
        progress("timing kernels");
        let profile =
            profile(host, async || session.profile(host).await).await?.map(|times| by_kernel(&kernels, &times));
        return Ok(Timed {
            fetch_interval,
            kernels: kernels.len(),
            compile_ms,
            first_prefill_ms,
            warm_up_ms,
            prefill_ms: Spread::of(prefill),
            decode_ms_per_token: Spread::of(decode),
            stats: PerToken::of(generation.steady_steps, generation.steady),
            memory: generation.steady.memory,
            profile,
        });
    }
}

/// Loads a model and measures it, and the floors of the device that was chosen for it. `loading` and `progress` are told
/// how far it is.
///
/// *Errors*: as [`Engine::load`]; options that make no sense, or do not fit the context; what the backend returns.
pub async fn run(
    name: &str,
    source: &dyn ByteSource,
    engine: &EngineOptions,
    options: &ModelOptions,
    host: Rc<dyn Host>,
    loading: &mut dyn FnMut(Progress),
    progress: &mut dyn FnMut(&str),
) -> Result<ModelReport, EngineError> {
    options.check_counts()?;
    let start = host.now_ms();
    let engine = Engine::load(source, engine, host.clone(), loading).await?;
    let model = engine.model().clone();
    let (all_ms, load_ms) = (host.now_ms() - start, model.load_ms());
    let timed = time(&model, options, &*host, progress).await?;
    progress("measuring the floors");
    let backend: &dyn Backend = engine.backend();
    let floors = floors(backend, &*host).await?;

    let open_ms = (all_ms - load_ms).max(0.0);
    let (prefill, decode) = (timed.prefill_ms, timed.decode_ms_per_token);
    let graph = model.recipe().graph(1, Head::Greedy)?;
    let middle = options.prefill + options.decode / 2;
    Ok(ModelReport {
        backend: backend.info().name,
        adapter: backend.info().adapter.clone(),
        model: name.into(),
        prefill_tokens: options.prefill,
        decode_tokens: options.decode,
        fetch_interval: timed.fetch_interval,
        load_ms,
        warm_up_ms: timed.warm_up_ms,
        first_token: FirstToken {
            open_ms,
            load_ms,
            compile_ms: timed.compile_ms,
            prefill_ms: timed.first_prefill_ms,
            total_ms: open_ms + load_ms + timed.compile_ms + timed.first_prefill_ms,
        },
        prefill_ms: prefill,
        prefill_tokens_per_s: rate(options.prefill as f64, prefill.median),
        decode_ms_per_token: decode,
        decode_tokens_per_s: rate(1.0, decode.median),
        stats: timed.stats,
        device_memory_bytes: timed.memory,
        decode_floor: DecodeFloor::of(&floors, Work::of(&graph)?, timed.kernels, middle, decode.median),
        floors,
        profile: timed.profile,
    })
}

/// A prompt of so many tokens. Any ids will do: no operator's time depends on values.
pub(super) fn prompt(tokens: usize, n_vocab: usize) -> Vec<u32> {
    (0..tokens).map(|i| (i.wrapping_mul(7919) % n_vocab.max(1)) as u32).collect()
}

/// So many in so many milliseconds, a second.
pub(super) fn rate(count: f64, ms: f64) -> f64 {
    if ms > 0.0 { 1000.0 * count / ms } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_abs_diff_eq;
    use backend_api::Format;
    use backend_api::op::{GetRows, Index, MatMul, MatMulId, ShortConv};

    #[test]
    fn a_step_reads_the_experts_that_its_token_goes_to_and_writes_states_that_are_replaced() {
        let mut graph = Graph::new();
        let x = graph.input("x", &[1, 64], DType::F32).unwrap();
        let ids = graph.input("ids", &[1, 2], DType::I32).unwrap();
        let w = graph.weight("w", &[8 * 32, 64], DType::Packed(Format::Q4_0)).unwrap();
        graph.push(MatMulId::dense(32), &[x, w, ids]).unwrap();
        let before = graph.external(Kind::State(Update::Replace), "before", &[2, 64], DType::F32).unwrap();
        let taps = graph.weight("taps", &[64, 3], DType::F32).unwrap();
        graph.push_multi(ShortConv.into(), &[before, x, taps]).unwrap();
        let work = Work::of(&graph).unwrap();
        // Two of eight experts of 32 rows; two rows of 64 floats, read and written.
        let bytes = Work { weight_bytes: 2 * 32 * 2 * 18, cache_bytes_per_position: 0, rewritten_bytes: 2 * 2 * 256 };
        assert_eq!(work, bytes);
    }

    #[test]
    fn a_step_reads_the_weights_of_its_matmuls_and_the_cache() {
        let mut graph = Graph::new();
        let history = graph.state("history", &[16], DType::I32).unwrap();
        graph.state("cache", &[16, 64], DType::F32).unwrap();
        let table = graph.weight("table", &[100, 64], DType::Packed(Format::Q4_0)).unwrap();
        let x = graph.push(GetRows { index: Index::Tokens { rows: 1 } }, &[table, history]).unwrap();
        let w = graph.weight("w", &[32, 64], DType::Packed(Format::Q4_0)).unwrap();
        graph.push(MatMul, &[x, w]).unwrap();
        let work = Work::of(&graph).unwrap();
        // 32 rows of two blocks of 18 bytes; one row of 64 floats a position.
        let bytes = Work { weight_bytes: 32 * 2 * 18, cache_bytes_per_position: 256, rewritten_bytes: 0 };
        assert_eq!(work, bytes);
        let readback_ms = Spread::of(vec![0.1]);
        let floors = Floors { read_gb_per_s: 1.0, read: Vec::new(), dispatch_us: 5.0, step_us: 9.0, readback_ms };
        let floor = DecodeFloor::of(&floors, work, 10, 8, 0.1);
        assert_eq!((floor.weight_bytes, floor.cache_bytes), (1152, 2048));
        assert_abs_diff_eq!(floor.floor_ms, 0.0532, epsilon = 1e-12);
        assert_abs_diff_eq!(floor.fraction, 0.532, epsilon = 1e-9);
    }
}
