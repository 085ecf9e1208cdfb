//! `generate`, and the story of a command line without a command.

mod message;

use crate::args::{
    AdjustArgs, ContextArgs, DeviceArgs, GenerateArgs, LoadArgs, ModelArgs, OverflowArgs, SamplingArgs, Tools,
};
use crate::load::Loaded;
use crate::models::Reference;
use crate::{alloc, interrupt, output, saved, text};
use anygpu::{
    Adjust, ChatOptions, ChatPrompt, GenerateOptions, Generation, LogProbEntry, Message, Overflow, Overflowed, Parts,
    Sampling, Saving, SnapshotSink,
};
use anygpu_constrain::Format;
use anyhow::{Result, bail};
use message::Answer;
use serde::Serialize;
use std::cell::Cell;
use std::io;
use std::mem;
use std::rc::Rc;

/// The output of `generate --json`. A number is null if too few tokens were generated to measure it.
#[derive(Debug, Serialize)]
struct Report<'a> {
    backend: &'a str,
    adapter: &'a str,
    model: &'a str,
    prompt_tokens: &'a [u32],
    tokens: &'a [u32],
    text: &'a str,
    /// The parts of a chat's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Answer>,
    finish: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<LogProbs>,
    overflow: Option<Overflowed>,
    drafted_tokens: usize,
    accepted_tokens: usize,
    load_ms: f64,
    prefill_ms: f64,
    decode_ms_per_token: f64,
    stats: PerToken,
}

/// Log probabilities of the new tokens, in the format of OpenAI's API.
#[derive(Debug, Serialize)]
struct LogProbs {
    content: Vec<LogProbEntry>,
}

/// Counters per token of steady decoding.
#[derive(Debug, Serialize)]
struct PerToken {
    dispatches_per_token: Option<f64>,
    submits_per_token: Option<f64>,
    gpu_objects_per_token: Option<f64>,
    heap_allocations_per_token: Option<f64>,
    upload_bytes_per_token: Option<f64>,
    readback_bytes_per_token: Option<f64>,
    device_memory_bytes: u64,
}

impl PerToken {
    fn of(generation: &Generation, heap: Option<f64>) -> PerToken {
        let (steps, steady) = (generation.steady_steps, generation.steady);
        let rate = |count: u64| (steps > 0).then(|| count as f64 / steps as f64);
        PerToken {
            dispatches_per_token: rate(steady.dispatches),
            submits_per_token: rate(steady.submits),
            gpu_objects_per_token: rate(steady.objects),
            heap_allocations_per_token: heap,
            upload_bytes_per_token: rate(steady.uploaded),
            readback_bytes_per_token: rate(steady.read_back),
            device_memory_bytes: steady.memory,
        }
    }
}

impl SamplingArgs {
    /// Returns the requested sampling method, if there is one.
    pub fn sampling(&self) -> Option<Sampling> {
        let given = self.temperature.is_some() || self.top_k.is_some() || self.top_p.is_some() || self.seed.is_some();
        if self.greedy || !given {
            return self.greedy.then_some(Sampling::Greedy);
        }
        Some(Sampling::Random {
            temperature: self.temperature.unwrap_or(0.8),
            top_k: self.top_k.unwrap_or(40),
            top_p: self.top_p.unwrap_or(0.95),
            seed: self.seed.unwrap_or(0),
        })
    }
}

impl AdjustArgs {
    /// Returns these adjustments. Those that were not requested keep their values of `before`.
    fn adjust(&self, before: Adjust) -> Adjust {
        let logit_bias = if self.logit_bias.is_empty() { before.logit_bias } else { self.logit_bias.clone() };
        Adjust {
            repetition_penalty: self.repetition_penalty.unwrap_or(before.repetition_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(before.presence_penalty),
            frequency_penalty: self.frequency_penalty.unwrap_or(before.frequency_penalty),
            min_p: self.min_p.unwrap_or(before.min_p),
            logit_bias,
        }
    }
}

/// Returns the prompt, the options of the request, and the parser of a chat's answer. If a saved text continues, the
/// prompt ends with the tokens that were generated before.
fn asked(args: &GenerateArgs, text: &str, loaded: &Loaded) -> Result<(Vec<u32>, GenerateOptions, Option<Parts>)> {
    let OverflowArgs { overflow, keep } = args.overflow;
    let format = args.format.format()?;
    let sampling = args.sampling.sampling();
    if text.is_empty()
        && let Some((text, before)) = loaded.broken_off()?
    {
        let options = GenerateOptions {
            max_tokens: args.max_tokens.or(before.max_tokens),
            sampling: sampling.unwrap_or(before.sampling),
            adjust: args.adjust.adjust(before.adjust),
            log_probs: args.logprobs,
            constraint: loaded.held(format.as_ref())?.or(before.constraint),
            // The text is shown from its beginning.
            untold: before.done.len(),
            draft_max: args.draft_max,
            fetch_interval: loaded.generate_options(args.fetch_interval).fetch_interval,
            ..before
        };
        return Ok((text, options, None));
    }
    let mut parts = None;
    let mut options = GenerateOptions {
        max_tokens: args.max_tokens,
        overflow,
        sampling: sampling.or(loaded.sampling()).unwrap_or(Sampling::Greedy),
        adjust: args.adjust.adjust(Adjust::default()),
        log_probs: args.logprobs,
        stop_tokens: args.ignore_eos.then(Vec::new),
        stop: args.stop.clone(),
        draft_max: args.draft_max,
        ..loaded.generate_options(args.fetch_interval)
    };
    let (prompt, usual) = if args.chat {
        let system = args.system.iter().map(|system| Message::new("system", &**system));
        let messages: Vec<Message> = system.chain([Message::new("user", text)]).collect();
        let tools = args.tools.clone().map_or_else(Vec::new, |Tools(tools)| tools);
        let tool_choice = args.tool_choice.clone().unwrap_or_default();
        let (variables, held) = (args.template.variables(), format.is_some());
        let asked = ChatOptions { tools, tool_choice, variables, held, ..ChatOptions::default() };
        let format = match loaded.call_form(&messages, &asked)? {
            Some(form) => Some(Format::Calls(Box::new(form))),
            None => format.map(|format| loaded.answering(format, &messages, &asked)).transpose()?,
        };
        options.constraint = loaded.held(format.as_ref())?;
        let chat = loaded.template(&asked)?;
        let ChatPrompt { tokens, keep, .. } = loaded.chat(&chat, &messages, &options)?;
        let (found, shown) = loaded.parts(&chat, &tokens)?;
        (parts, options.shown) = (Some(found), shown);
        (tokens, keep)
    } else {
        options.constraint = loaded.held(format.as_ref())?;
        let tokens = loaded.prompt(text)?;
        let kept = loaded.kept(&tokens);
        (tokens, kept)
    };
    options.overflow = overflow.keeping(keep, usual)?;
    Ok((prompt, options, parts))
}

/// Runs `generate`. Returns whether it was interrupted.
pub fn run(args: &GenerateArgs, device: &DeviceArgs) -> Result<bool> {
    if !args.chat && !args.template.template_arg.is_empty() {
        bail!("--template-arg is for chat templates; use it with --chat");
    }
    let file = args.file.as_deref();
    // With a complete prompt the standard input is not read: scripts may use it for something else.
    let text = match args.words.as_deref().or(args.instruction.as_deref()) {
        Some(words) => text::instructed(words, file)?,
        None => text::given(args.prompt.as_deref(), file)?,
    };
    let mut loaded = Loaded::going_on(&args.load, &args.draft, device, &args.session)?;
    loaded.makes_text()?;
    let (mut prompt, mut options, parts) = asked(args, &text, &loaded)?;
    if let (Some(seconds), Some(path)) = (args.save_every, &args.session.save_session) {
        let sink: Rc<dyn SnapshotSink> = Rc::new(saved::Log::new(path.clone()));
        options.saving = Some(Saving { every_ms: 1000.0 * seconds, sink });
    }
    let begin = if args.chat { "" } else { &text };
    let (sampling, done) = (options.sampling, options.done.len());
    let (generation, heap) = stream(&mut loaded, &prompt, options, (!args.json).then_some(begin))?;
    // The report lists these among the new tokens.
    prompt.truncate(prompt.len() - done);
    if let Some(path) = &args.session.save_session {
        let text = [&prompt[..], &generation.tokens].concat();
        loaded.save(path, &generation.context(&text), Some(sampling))?;
    }
    if args.json {
        let info = loaded.info();
        output::json(&Report {
            backend: info.name,
            adapter: &info.adapter,
            model: &loaded.name,
            prompt_tokens: &prompt,
            tokens: &generation.tokens,
            text: &generation.text,
            message: parts.map(|parts| Answer::of(parts, &generation.text)),
            logprobs: args.logprobs.map(|_| LogProbs {
                content: generation.log_probs.iter().map(|told| told.entry(loaded.tokenizer())).collect(),
            }),
            finish: generation.finish.name(),
            overflow: generation.overflow,
            drafted_tokens: generation.drafted_tokens,
            accepted_tokens: generation.accepted_tokens,
            load_ms: loaded.load_ms(),
            prefill_ms: generation.prefill_ms,
            decode_ms_per_token: generation.decode_ms_per_token,
            stats: PerToken::of(&generation, heap),
        })?;
    } else {
        summary(&loaded, &generation);
    }
    Ok(interrupt::interrupted())
}

/// Beginning of the story that runs without a command. Greedy decoding makes a coherent story of it, which is the same
/// on every machine.
const OPENING: &str = "Once upon a time";

/// Generates a story with the built-in model. Returns whether it was interrupted.
pub fn story(device: &DeviceArgs) -> Result<bool> {
    let model = ModelArgs { model: Reference::BuiltIn };
    let load = LoadArgs { model, context: ContextArgs::default() };
    let mut loaded = Loaded::new(&load, device)?;
    output::text(&format!("{}\n\n", loaded.report()))?;
    let (max_tokens, overflow) = (Some(usize::MAX), Overflow::Stop);
    let options = GenerateOptions { max_tokens, overflow, ..loaded.generate_options(None) };
    let prompt = loaded.prompt(OPENING)?;
    let (generation, _) = stream(&mut loaded, &prompt, options, Some(OPENING))?;
    summary(&loaded, &generation);
    Ok(interrupt::interrupted())
}

/// Tokens between two counts of heap allocations, if the fetch interval is not fixed.
const SAMPLE_EVERY: usize = 4;

/// Generates a text. Returns it with the heap allocations per token. The text is printed as it comes if `begin`, which
/// is printed before it, is given.
fn stream(
    loaded: &mut Loaded,
    prompt: &[u32],
    options: GenerateOptions,
    begin: Option<&str>,
) -> Result<(Generation, Option<f64>)> {
    let cancel = Rc::new(Cell::new(false));
    let options = GenerateOptions { cancel: Some(cancel.clone()), ..options };
    let (mut shown, mut written, mut heap) =
        (0, Ok(()), alloc::PerToken::new(options.fetch_interval.unwrap_or(SAMPLE_EVERY)));
    let (show, mut begin) = (begin.is_some(), begin.unwrap_or_default());
    let mut steady = true;
    let mut words = output::Words::said();
    let mut write = |text: &str| -> io::Result<()> {
        // The beginning is printed with the first token, because an error may come instead of a text.
        let parts = [mem::take(&mut begin), text];
        parts.into_iter().filter(|part| show && !part.is_empty()).try_for_each(|part| words.push(part))
    };

    interrupt::generating(true);
    let generation = loaded.generate(prompt, &options, &mut |piece| {
        // After the context overflows, the remaining text is computed again, which allocates memory.
        steady &= piece.overflow.is_none();
        if steady && !piece.is_pause() {
            heap.token();
        }
        shown += piece.text.len();
        if written.is_ok() {
            written = write(piece.text);
        }
        cancel.set(interrupt::interrupted() || written.is_err());
    });
    interrupt::generating(false);
    let generation = generation?;
    written?;
    write(generation.text.get(shown..).unwrap_or_default())?;
    write("\n")?;
    Ok((generation, heap.rate()))
}

/// Prints timings and counters after a text.
fn summary(loaded: &Loaded, generation: &Generation) {
    let info = loaded.info();
    let rate = if generation.decode_ms_per_token > 0.0 { 1000.0 / generation.decode_ms_per_token } else { 0.0 };
    output::note(&format!(
        "\n{} on {} ({}): loaded in {:.0} ms, first token after {:.0} ms, {} tokens at {rate:.1} a second",
        loaded.name,
        info.name,
        info.adapter,
        loaded.load_ms(),
        generation.prefill_ms,
        generation.tokens.len(),
    ));
    output::note(&loaded.context());
    if generation.drafted_tokens > 0 {
        let Generation { drafted_tokens, accepted_tokens, .. } = generation;
        output::note(&format!("{accepted_tokens} of {drafted_tokens} drafted tokens were right"));
    }
    if let Some(Overflowed { policy, dropped_tokens, times, ms }) = generation.overflow {
        let n_ctx = loaded.n_ctx();
        output::note(&match policy {
            Overflow::Shift { .. } => {
                format!(
                    "the context of {n_ctx} was full: {dropped_tokens} old tokens made room ({times} times, {ms:.0} ms)"
                )
            }
            Overflow::Error | Overflow::Stop => {
                format!("the context of {n_ctx} is full; --overflow shift drops old tokens and goes on")
            }
        });
    }
}
