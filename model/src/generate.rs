//! Generation: several decode steps are in flight before one read of the tokens that they produced.

use backend_api::{Backend, ReadId, Stats, StepParams};
use serde::{Deserialize, Serialize};

use crate::arch::Head;
use crate::error::ModelError;
use crate::interval::{Interval, MAX_FETCH_INTERVAL};
use crate::request::GenerateOptions;
use crate::saving::Saver;
use crate::session::Session;
use crate::stop::StopFilter;
use crate::tokenizer::{StreamDecoder, Tokenizer};
use backend_api::run::{Host, finish_read};

/// Why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// A stop token or stop string was produced.
    Stop,
    /// As many tokens as asked for, or the context is full.
    Length,
    /// The caller cancelled.
    Cancelled,
}

impl Finish {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Finish::Stop => "stop",
            Finish::Length => "length",
            Finish::Cancelled => "cancelled",
        }
    }
}

/// A generation that ended.
#[derive(Debug, Clone)]
pub struct Generation {
    /// Tokens of the prompt that had to be computed.
    pub prompt_tokens: usize,
    /// The new tokens, without the stop token; those that were done before are among them.
    pub tokens: Vec<u32>,
    /// Their text, without the stop string.
    pub text: String,
    /// Why it ended.
    pub finish: Finish,
    /// From the start to the first token.
    ///
    /// *Units*: milliseconds.
    pub prefill_ms: f64,
    /// From one token to the next, on average.
    ///
    /// *Units*: milliseconds; 0 if there was no second token.
    pub decode_ms_per_token: f64,
    /// Decode steps that [`Self::steady`] covers.
    pub steady_steps: usize,
    /// Counters of the backend over all decode steps but those of the first interval, reads included.
    pub steady: Stats,
}

/// What the caller is told about each new token as it arrives.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// The token; none when text that was held back is reported at the end.
    pub token: Option<u32>,
    /// Text that is certain by now: it may be empty, or include that of earlier tokens.
    pub text: &'a str,
}

/// Takes tokens until the text ends.
struct Sink<'a> {
    options: &'a GenerateOptions,
    tokenizer: Option<&'a Tokenizer>,
    stop_tokens: &'a [u32],
    decoder: StreamDecoder,
    filter: StopFilter<'a>,
    decoded: String,
    on_piece: &'a mut dyn FnMut(Piece<'_>),
    tokens: Vec<u32>,
    text: String,
}

impl Sink<'_> {
    /// Whether the text ends here.
    fn push(&mut self, token: u32) -> Option<Finish> {
        if self.options.cancel.as_ref().is_some_and(|c| c.get()) {
            return Some(Finish::Cancelled);
        }
        self.take(token, true)
    }

    /// Whether the text ends here; the caller is told of the token unless it knows it.
    fn take(&mut self, token: u32, tell: bool) -> Option<Finish> {
        if self.stop_tokens.contains(&token) {
            return Some(Finish::Stop);
        }
        self.tokens.push(token);
        let shown = self.text.len();
        let mut stopped = false;
        if let Some(tokenizer) = self.tokenizer {
            self.decoded.clear();
            self.decoder.push(tokenizer, token, &mut self.decoded);
            stopped = self.filter.push(&self.decoded, &mut self.text);
        }
        if tell {
            (self.on_piece)(Piece { token: Some(token), text: &self.text[shown..] });
        }
        if stopped {
            return Some(Finish::Stop);
        }
        (self.tokens.len() >= self.options.max_tokens).then_some(Finish::Length)
    }

    /// Reports what was held back, and returns tokens and text.
    fn finish(mut self) -> (Vec<u32>, String) {
        let shown = self.text.len();
        self.decoded.clear();
        self.decoder.finish(&mut self.decoded);
        self.filter.push(&self.decoded, &mut self.text);
        self.filter.finish(&mut self.text);
        if self.text.len() > shown {
            (self.on_piece)(Piece { token: None, text: &self.text[shown..] });
        }
        (self.tokens, self.text)
    }
}

impl Session {
    /// Adds a prompt to the text and generates what follows. Afterwards the session knows the prompt and all new
    /// tokens but the last, whose keys and values may not have been computed.
    ///
    /// A generation that was broken off, say because a device was lost, goes on where it was if the prompt ends with the
    /// tokens that it gave, which the options name: what is drawn follows from the seed and the position.
    ///
    /// Without a tokenizer there is no text, and nothing but `options.stop_tokens` stops before `max_tokens`.
    ///
    /// *Errors*: a prompt that is empty, too long for the context, or has unknown tokens; options out of range; what
    /// the backend returns; logits that are not finite.
    pub async fn generate(
        &mut self,
        prompt: &[u32],
        options: &GenerateOptions,
        tokenizer: Option<&Tokenizer>,
        host: &dyn Host,
        on_piece: &mut dyn FnMut(Piece<'_>),
    ) -> Result<Generation, ModelError> {
        let (head, sampling) = options.sampling.step()?;
        options.check_stops()?;
        if let Some(given) = options.fetch_interval.filter(|given| !(1..=MAX_FETCH_INTERVAL).contains(given)) {
            return Err(ModelError::Options(format!("the fetch interval {given} is not in 1 to {MAX_FETCH_INTERVAL}")));
        }
        if tokenizer.is_none() && !options.stop.is_empty() {
            return Err(ModelError::Options(
                "stop strings need a tokenizer, which this file lacks; use stop tokens".into(),
            ));
        }
        let eog = tokenizer.map_or(&[][..], Tokenizer::eog);
        let sink = Sink {
            options,
            tokenizer,
            stop_tokens: options.stop_tokens.as_deref().unwrap_or(eog),
            decoder: StreamDecoder::default(),
            filter: StopFilter::new(&options.stop),
            decoded: String::new(),
            on_piece,
            tokens: Vec::with_capacity(options.max_tokens.min(self.n_ctx())),
            text: String::new(),
        };
        let ended = self.run(prompt, options, (head, sampling), sink, host).await;
        if ended.is_err() {
            // What is under way holds memory. The error that counts is the first one.
            let _ = self.settle_states(host).await;
        }
        ended
    }

    async fn run(
        &mut self,
        prompt: &[u32],
        options: &GenerateOptions,
        (head, sampling): (Head, StepParams),
        mut sink: Sink<'_>,
        host: &dyn Host,
    ) -> Result<Generation, ModelError> {
        let start = host.now_ms();
        let backend = self.model().backend().clone();
        let begin = self.position() + prompt.len();
        let told = options.done.len().saturating_sub(options.untold);
        let ended = options.done.iter().enumerate().find_map(|(at, token)| sink.take(*token, at >= told));
        // A token needs a row of the history.
        let left = options.max_tokens.saturating_sub(options.done.len());
        let budget = if ended.is_some() { 0 } else { left.min(self.n_ctx().saturating_sub(begin)) };
        let mut saver = options.saving.as_ref().map(|saving| Saver::new(saving, self.tokens(), prompt, options, start));
        if let Some(saver) = &mut saver {
            saver.save(self, &options.done, None, host).await?;
        }
        let wanted = if budget == 0 { Head::None } else { head };
        // Tokens that were decoded before are computed one by one again, so that they are rounded alike.
        let decoded = options.done.len().min(prompt.len().saturating_sub(1));
        let (front, again) = prompt.split_at(prompt.len() - decoded);
        if again.is_empty() {
            self.prefill(prompt, wanted, &sampling, host).await?;
        } else {
            self.prefill_again(front, again, (wanted, &sampling), host).await?;
        }

        let n_vocab = self.model().recipe().sizes().n_vocab;
        let buffer = [0; MAX_FETCH_INTERVAL];
        let mut run =
            Run { begin, budget, made: 0, broken: None, n_vocab, head, sampling, backend: &*backend, host, buffer };
        let (mut finish, mut prefill_ms, mut steady) = (ended, 0.0, None);
        if budget > 0 {
            self.prepare(1, head)?;
            // The first token is awaited by itself: it is what a person waits for.
            run.made = 1;
            let first = Fetch { read: backend.read(self.history(), begin, 1)?, first: begin, count: 1 };
            finish = run.accept(first, &mut sink).await?;
            prefill_ms = host.now_ms() - start;
        }
        let decode_start = host.now_ms();
        let mut interval = Interval::new(options.fetch_interval, decode_start);
        let mut under_way: Option<Fetch> = None;
        let mut known = 0;
        let decoding = async {
            while finish.is_none() {
                if let Some(saver) = saver.as_mut().filter(|saver| saver.is_due(host.now_ms())) {
                    // States are those of the tokens that are known once nothing is under way.
                    if let Some(fetch) = under_way.take() {
                        finish = run.accept(fetch, &mut sink).await?;
                    }
                    if finish.is_none() {
                        known = self.know_all_but_one(&sink.tokens[options.done.len()..], known);
                        saver.save(self, &sink.tokens, None, host).await?;
                    }
                    interval.skip_to(host.now_ms());
                    continue;
                }
                let next = run.submit(self, interval.steps)?;
                if let Some(fetch) = std::mem::replace(&mut under_way, next) {
                    let count = fetch.count;
                    finish = run.accept(fetch, &mut sink).await?;
                    interval.measure(count, host.now_ms());
                    steady.get_or_insert_with(|| (run.made, backend.stats()));
                }
                if under_way.is_none() {
                    finish = finish.or(Some(Finish::Length));
                }
            }
            Ok::<_, ModelError>(host.now_ms() - decode_start)
        };
        let decoded = decoding.await;
        // Steps past the end, or before a failure: nobody wants their tokens, but the read must be finished.
        let finished = match under_way {
            Some(fetch) => finish_read(&*backend, fetch.read, run.bytes(fetch.count), host).await,
            None => Ok(()),
        };
        let decode_ms = decoded?;
        finished?;
        self.settle_states(host).await?;
        if let Some(position) = run.broken {
            let (tokens, _) = sink.finish();
            self.know(tokens.get(options.done.len() + known..).unwrap_or_default());
            return Err(self.not_a_number(position, host).await);
        }
        let (steady_from, stats_from) = steady.unwrap_or((run.made, backend.stats()));

        let (tokens, text) = sink.finish();
        let fresh = tokens.get(options.done.len()..).unwrap_or_default();
        self.know_all_but_one(fresh, known);
        if let Some(saver) = &mut saver {
            saver.save(self, &tokens, finish.or(Some(Finish::Length)), host).await?;
        }
        let later = fresh.len().saturating_sub(1);
        Ok(Generation {
            prompt_tokens: prompt.len(),
            text,
            finish: finish.unwrap_or(Finish::Length),
            prefill_ms,
            decode_ms_per_token: if later > 0 { decode_ms / later as f64 } else { 0.0 },
            steady_steps: run.made - steady_from,
            steady: backend.stats().since(&stats_from),
            tokens,
        })
    }
}

/// A read of tokens in progress.
struct Fetch {
    read: ReadId,
    /// Position of the first.
    first: usize,
    count: usize,
}

/// The decode steps of one generation.
struct Run<'a> {
    /// Position of the first new token.
    begin: usize,
    /// New tokens at most.
    budget: usize,
    /// New tokens that submitted steps make.
    made: usize,
    /// Position of the token after which there was none, because the logits were not finite.
    broken: Option<usize>,
    n_vocab: usize,
    head: Head,
    sampling: StepParams,
    backend: &'a dyn Backend,
    host: &'a dyn Host,
    buffer: [u32; MAX_FETCH_INTERVAL],
}

impl Run<'_> {
    /// Submits up to `interval` steps and begins to read their tokens; nothing if the budget is used up.
    fn submit(&mut self, session: &mut Session, interval: usize) -> Result<Option<Fetch>, ModelError> {
        let count = interval.min(self.budget - self.made);
        if count == 0 {
            return Ok(None);
        }
        let first = self.begin + self.made;
        for position in first - 1..first - 1 + count {
            session.decode(position, self.head, &self.sampling)?;
        }
        self.made += count;
        Ok(Some(Fetch { read: self.backend.read(session.history(), first, count)?, first, count }))
    }

    fn bytes(&mut self, count: usize) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.buffer[..count])
    }

    /// Waits for tokens and hands them on until the text ends.
    async fn accept(&mut self, fetch: Fetch, sink: &mut Sink<'_>) -> Result<Option<Finish>, ModelError> {
        let (backend, host) = (self.backend, self.host);
        finish_read(backend, fetch.read, self.bytes(fetch.count), host).await?;
        let mut finish = None;
        for (at, &token) in self.buffer[..fetch.count].iter().enumerate() {
            // Logits that are not finite have no best one: its id is -1.
            if token as usize >= self.n_vocab {
                self.broken = Some(fetch.first + at - 1);
                finish = Some(Finish::Stop);
            } else {
                finish = sink.push(token);
            }
            if finish.is_some() {
                break;
            }
        }
        // Where steps are done at once, this is the host's only chance to show the tokens and to cancel.
        host.turn().await;
        Ok(finish)
    }
}
