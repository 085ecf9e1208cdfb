//! Benchmark of a model: the time from the file to the first token, by phase, then several runs of prefill and decode.

use std::rc::Rc;

use backend_api::{Backend, DType, Graph, Kind, Op, Stats, Update};
use model::{ByteSource, GenerateOptions, Head, Host, Model, ModelError, Sampling, Session, Sizes};
use serde::Serialize;

use super::profile::by_kernel;
use super::steps::Traces;
use super::{Buffers, Floors, KernelTime, Phases, Roles, Spread, by_role, floors};
use crate::engine::fetch_interval;
use crate::error::EngineError;
use crate::{Engine, EngineOptions, Progress};

/// Measurements to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelOptions {
    /// Tokens of the text before the prompt, which are not measured.
    pub depth: usize,
    /// Prompt tokens. Decoding begins after them.
    pub prefill: usize,
    /// Tokens to decode after it.
    pub decode: usize,
    /// Number of runs, after a first one that does not count.
    pub repeat: usize,
    /// Decode steps that are submitted between two reads; by default a value that suits the backend.
    pub fetch_interval: Option<usize>,
}

impl Default for ModelOptions {
    fn default() -> ModelOptions {
        ModelOptions { depth: 0, prefill: 128, decode: 64, repeat: 5, fetch_interval: None }
    }
}

impl ModelOptions {
    /// Returns the tokens that the context must hold.
    pub fn n_ctx(&self) -> usize {
        [self.depth, self.prefill, self.decode].into_iter().fold(1, usize::saturating_add)
    }

    /// Returns the options with which tokens are generated.
    pub(super) fn generate(&self, model: &Model) -> GenerateOptions {
        GenerateOptions {
            // One token more, since the first one belongs to the prefill.
            max_tokens: Some(self.decode + 1),
            stop_tokens: Some(Vec::new()),
            fetch_interval: self.fetch_interval.or_else(|| fetch_interval(&**model.backend())),
            // Each token takes a step of its own, without drafts.
            draft_max: Some(0),
            ..GenerateOptions::default()
        }
    }

    fn check_counts(&self) -> Result<(), EngineError> {
        if self.prefill == 0 || self.decode == 0 || self.repeat == 0 {
            return Err(refused("prefill, decode and repeat must be at least 1"));
        }
        Ok(())
    }

    /// Refuses counts of zero, and counts that do not fit the context.
    pub(super) fn check(&self, sizes: &Sizes) -> Result<(), EngineError> {
        self.check_counts()?;
        if sizes.n_ctx < self.n_ctx() {
            let (need, have) = (self.n_ctx(), sizes.n_ctx);
            let ModelOptions { depth, prefill, decode, .. } = self;
            return Err(refused(&format!(
                "the context of {have} is too short for {depth} + {prefill} + {decode} tokens; use smaller numbers or a \
                 context of {need}"
            )));
        }
        Ok(())
    }
}

fn refused(why: &str) -> EngineError {
    ModelError::Options(why.into()).into()
}

/// Time to the first token of a program that was just started, by phase.
///
/// *Units*: milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct FirstToken {
    /// Time of reading the file's header and choosing the backend: opening, testing and timing candidates.
    pub open_ms: f64,
    /// Time of uploading the weights.
    pub load_ms: f64,
    /// Time of compiling the programs of the prompt and of a decode step.
    pub compile_ms: f64,
    /// Time from the prompt to its first token, with programs that never ran.
    pub prefill_ms: f64,
    /// Sum of all phases.
    pub total_ms: f64,
}

/// Counters of steady decoding; null if there were too few tokens to measure them.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct PerToken {
    /// Dispatches or draws.
    pub dispatches_per_token: Option<f64>,
    /// Submissions of encoded work.
    pub submits_per_token: Option<f64>,
    /// GPU objects created.
    pub gpu_objects_per_token: Option<f64>,
    /// Bytes uploaded to the device.
    pub upload_bytes_per_token: Option<f64>,
    /// Bytes read back from the device.
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

/// Comparison of the decode speed with the device's floors (roofline).
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DecodeFloor {
    /// Bytes of weights that a step's matmuls read.
    pub weight_bytes: u64,
    /// Bytes of the KV cache that a step reads, at the middle one of the decoded tokens, and of recurrent states.
    pub cache_bytes: u64,
    /// Least time of reading these bytes, in milliseconds.
    pub read_ms: f64,
    /// Least time of the dispatches or draws, in milliseconds.
    pub dispatch_ms: f64,
    /// Sum of both.
    pub floor_ms: f64,
    /// Ratio of the floor to the measured time of a token; 1 is the best possible.
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

/// Bytes that a decode step moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Work {
    weight_bytes: u64,
    cache_bytes_per_position: u64,
    /// Bytes of recurrent states, which a step reads and writes as a whole.
    rewritten_bytes: u64,
}

impl Work {
    /// Counts the work of the graph of a decode step. A packed weight is read as a whole, except for tables that rows
    /// are looked up in, and except for experts that the token is not routed to.
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

/// Results of a model. Field names are stable: other programs read the JSON.
#[derive(Debug, Clone, Serialize)]
pub struct ModelReport {
    /// The kind of backend.
    pub backend: &'static str,
    /// The device.
    pub adapter: String,
    /// The model, as the caller names it.
    pub model: String,
    /// Tokens of the text before the prompt.
    pub depth: usize,
    /// Tokens of the prompt.
    pub prefill_tokens: usize,
    /// Tokens decoded after it.
    pub decode_tokens: usize,
    /// Decode steps that are submitted between two reads; null if the device's speed decides.
    pub fetch_interval: Option<usize>,
    /// Time of uploading the weights.
    pub load_ms: f64,
    /// Time of compilation and of the run that does not count.
    pub warm_up_ms: f64,
    /// The time to the first token.
    pub first_token: FirstToken,
    /// Times from the prompt to its first token.
    pub prefill_ms: Spread,
    /// Prefill speed, from the median.
    pub prefill_tokens_per_s: f64,
    /// Times from one token to the next.
    pub decode_ms_per_token: Spread,
    /// Decode speed, from the median.
    pub decode_tokens_per_s: f64,
    /// Times from one token to the next where tokens are drawn, as they are in chats; those above are the likeliest.
    pub drawn_ms_per_token: Spread,
    /// Phases of a decode step.
    #[serde(flatten)]
    pub phases: Phases,
    /// Counters of a token.
    pub stats: PerToken,
    /// Memory that is allocated on the device.
    pub device_memory_bytes: u64,
    /// Buffers (or textures) by class; what they do not add up to is staging memory, inputs and outputs.
    pub buffers: Vec<Buffers>,
    /// Kernels of the prompt and of a decode step by role.
    pub roles: Roles,
    /// The floors of the device.
    pub floors: Floors,
    /// Comparison of the decode speed with the floors.
    pub decode_floor: DecodeFloor,
    /// Kernels of a decode step, each timed separately by the device's clock; null if it does not have one.
    pub profile: Option<Vec<KernelTime>>,
    /// Kernels of the prompt in the same way.
    pub prefill_profile: Option<Vec<KernelTime>>,
}

/// Measurements of prefill and decode of a model on a backend.
#[derive(Debug, Clone)]
pub(crate) struct Timed {
    pub fetch_interval: Option<usize>,
    pub compile_ms: f64,
    pub first_prefill_ms: f64,
    pub warm_up_ms: f64,
    pub prefill_ms: Spread,
    pub decode_ms_per_token: Spread,
    pub stats: PerToken,
    pub memory: u64,
}

/// Computes the text before the prompt, and drops what a run before has added to it.
pub(super) async fn fill(session: &mut Session, options: &ModelOptions, host: &dyn Host) -> Result<(), EngineError> {
    // States that cannot go back are those of the text's end once its last token is computed again.
    session.rewind(options.depth.saturating_sub(1));
    if options.depth == 0 {
        return Ok(());
    }
    let text = prompt(options.depth, session.model().recipe().sizes().n_vocab);
    let none = GenerateOptions { max_tokens: Some(1), ..options.generate(session.model()) };
    session.generate_after(&text, &none, None, host, &mut |_| {}).await?;
    Ok(())
}

/// Measures a loaded model.
///
/// *Errors*: options of zero, or that do not fit the context; those of the backend.
pub(crate) async fn time(
    model: &Rc<Model>,
    options: &ModelOptions,
    host: &dyn Host,
    progress: &mut dyn FnMut(&str),
) -> Result<Timed, EngineError> {
    options.check(model.recipe().sizes())?;
    let prompt = prompt(options.prefill, model.recipe().sizes().n_vocab);
    let generate = options.generate(model);
    let fetch_interval = generate.fetch_interval;

    progress("compiling");
    let start = host.now_ms();
    let mut session = Session::new(model.clone())?;
    session.prepare_prompt(options.prefill, Head::GREEDY)?;
    session.settle(host).await?;
    let compile_ms = host.now_ms() - start;

    let (mut prefill, mut decode) = (Vec::new(), Vec::new());
    let mut warm_up = None;
    loop {
        let run = prefill.len();
        let mut made = 0;
        fill(&mut session, options, host).await?;
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
        return Ok(Timed {
            fetch_interval,
            compile_ms,
            first_prefill_ms,
            warm_up_ms,
            prefill_ms: Spread::of(prefill),
            decode_ms_per_token: Spread::of(decode),
            stats: PerToken::of(generation.steady_steps, generation.steady),
            memory: generation.steady.memory,
        });
    }
}

/// Measures decoding where tokens are drawn with the settings that a chat has by default.
async fn drawn(
    model: &Rc<Model>,
    options: &ModelOptions,
    host: &dyn Host,
    progress: &mut dyn FnMut(&str),
) -> Result<Spread, EngineError> {
    let prompt = prompt(options.prefill, model.recipe().sizes().n_vocab);
    let sampling = Sampling::Random { temperature: 0.8, top_k: 40, top_p: 0.95, seed: 1 };
    let generate = GenerateOptions { sampling, ..options.generate(model) };
    let mut session = Session::new(model.clone())?;
    let mut times = Vec::new();
    // The first run compiles, and does not count.
    for run in 0..=options.repeat {
        progress(&format!("drawn tokens: run {run} of {}", options.repeat));
        fill(&mut session, options, host).await?;
        let generation = session.generate(&prompt, &generate, None, host, &mut |_| {}).await?;
        times.push(generation.decode_ms_per_token);
    }
    Ok(Spread::of(times.split_off(1)))
}

/// Loads a model and measures it, and the floors of the device that was chosen for it. Calls `loading` and `progress`
/// meanwhile.
///
/// *Errors*: as [`Engine::load`]; options of zero, or that do not fit the context; those of the backend.
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
    let drawn_ms_per_token = drawn(&model, options, &*host, progress).await?;
    let traces = Traces::of(&model, options, &*host, progress).await?;
    progress("measuring the floors");
    let backend: &dyn Backend = engine.backend();
    let floors = floors(backend, &*host).await?;

    let open_ms = (all_ms - load_ms).max(0.0);
    let (prefill, decode) = (timed.prefill_ms, timed.decode_ms_per_token);
    let graph = model.recipe().graph(1, Head::GREEDY)?;
    let middle = options.depth + options.prefill + options.decode / 2;
    Ok(ModelReport {
        backend: backend.info().name,
        adapter: backend.info().adapter.clone(),
        model: name.into(),
        depth: options.depth,
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
        drawn_ms_per_token,
        phases: traces.phases(decode.median),
        stats: timed.stats,
        device_memory_bytes: timed.memory,
        decode_floor: DecodeFloor::of(&floors, Work::of(&graph)?, traces.decode.len(), middle, decode.median),
        floors,
        roles: Roles { prefill: by_role(&traces.prefill), decode: by_role(&traces.decode) },
        profile: by_kernel(&traces.decode),
        prefill_profile: by_kernel(&traces.prefill),
        buffers: traces.buffers,
    })
}

/// Makes a prompt of so many tokens. Any ids do: no operator's time depends on values.
pub fn prompt(tokens: usize, n_vocab: usize) -> Vec<u32> {
    (0..tokens).map(|i| (i.wrapping_mul(7919) % n_vocab.max(1)) as u32).collect()
}

/// Converts a count in so many milliseconds to a count a second.
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
