//! Answers in the formats of OpenAI's API, complete or as event streams.

use super::error::{ApiError, respond};
use super::{Phase, Server, reached};
use anygpu::EngineError;
use anygpu::handle::{Embedded, Generate, HandleError, Outcome, Told};
use anygpu_openai::{Choice, Ended, Head, Shape, timings, usage};
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream, SelectAll};
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// Returns the time since 1970.
///
/// *Units*: seconds.
pub fn now() -> u64 {
    UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs())
}

/// Begins an answer of this server.
fn head(shape: Shape, server: &Server) -> Head {
    let fingerprint = format!("anygpu-{}-{}", env!("CARGO_PKG_VERSION"), server.handle.status().backend);
    Head::new(shape, now(), server.model.clone(), fingerprint)
}

fn ended(outcome: &Outcome) -> Ended {
    Ended {
        finish: outcome.finish,
        prompt_tokens: outcome.prompt_tokens,
        cached_tokens: outcome.cached_tokens,
        completion_tokens: outcome.tokens.len(),
        drafted_tokens: outcome.drafted_tokens,
        accepted_tokens: outcome.accepted_tokens,
        queue_ms: outcome.waited_ms,
        prefill_ms: outcome.prefill_ms,
        decode_ms: outcome.decode_ms,
    }
}

/// Events of all answers to one request. Dropping it cancels them.
type Answers = SelectAll<BoxStream<'static, (usize, Result<Told, EngineError>)>>;

/// Waits for the next event of any answer, unless the server stops before.
async fn next(server: &Server, answers: &mut Answers) -> Result<(usize, Told), ApiError> {
    let mut phase = server.phase.clone();
    let told = tokio::select! {
        told = answers.next() => told,
        () = reached(&mut phase, Phase::Ending) => return Err(ApiError::stopping()),
    };
    let (index, told) = told.ok_or(HandleError::Stopped)?;
    let told = told?;
    match &told {
        Told::Recovered(to) => {
            server.metrics.recovered();
            let lost = format!("{} was lost ({})", to.from, to.reason);
            crate::output::note(&format!("{lost}; {} went on after {:.0} ms", to.to, to.ms));
        }
        Told::Ended(outcome) => server.metrics.generated(outcome),
        Told::Begun { .. } | Told::Piece { .. } | Told::Overflowed(_) => {}
    }
    Ok((index, told))
}

/// A response in progress.
struct Responding {
    server: Arc<Server>,
    /// Streams of the answers. If the client disconnects, the connection is dropped, and these with it.
    answers: Answers,
    choices: Vec<Choice>,
    /// Number of choices for each prompt.
    n: usize,
    head: Head,
}

impl Responding {
    /// Begins a response. Returns when all answers, `n` to each prompt, are known to come.
    async fn begin(
        server: Arc<Server>,
        shape: Shape,
        generate: Vec<Generate>,
        n: usize,
    ) -> Result<Responding, ApiError> {
        let (mut answers, mut choices) = (Answers::new(), Vec::new());
        let asked = generate.into_iter().map(|generate| server.handle.generate(generate));
        for (index, mut answer) in asked.collect::<Result<Vec<_>, _>>()?.into_iter().enumerate() {
            let mut phase = server.phase.clone();
            let begun = tokio::select! {
                begun = answer.next() => begun,
                () = reached(&mut phase, Phase::Ending) => return Err(ApiError::stopping()),
            };
            match begun.ok_or(HandleError::Stopped)?? {
                Told::Begun { parts, .. } => choices.push(Choice::new(index, shape, *parts)),
                _ => return Err(HandleError::Stopped.into()),
            }
            answers.push(answer.map(move |told| (index, told)).boxed());
        }
        let head = head(shape, &server);
        Ok(Responding { server, answers, choices, n, head })
    }

    /// Waits for the next event. Returns the choice, the chunks that it adds, and whether the choice has ended.
    async fn next(&mut self) -> Result<(&mut Choice, Vec<Value>, bool), ApiError> {
        let (index, told) = next(&self.server, &mut self.answers).await?;
        let choice = self.choices.get_mut(index).ok_or(HandleError::Stopped)?;
        let (deltas, ended) = match told {
            Told::Piece { token, text, log_prob } => {
                (choice.take(&text, token.is_some(), log_prob.map(|log_prob| *log_prob)), false)
            }
            Told::Ended(outcome) => (choice.end(ended(&outcome)), true),
            Told::Begun { .. } | Told::Overflowed(_) | Told::Recovered(_) => (Vec::new(), false),
        };
        Ok((choice, deltas, ended))
    }

    fn is_over(&self) -> bool {
        self.choices.iter().all(Choice::has_ended)
    }
}

/// The form of the response to a request for text.
pub struct How {
    pub shape: Shape,
    /// Number of answers to each prompt.
    pub n: usize,
    pub stream: bool,
    pub include_usage: bool,
}

/// Answers a request for text. A stream begins once the request is known to be valid.
pub async fn text(server: Arc<Server>, generate: Vec<Generate>, how: How) -> Result<Response, ApiError> {
    let How { shape, n, stream, include_usage } = how;
    let mut responding = Responding::begin(server, shape, generate, n).await?;
    if stream {
        return Ok(events(responding, include_usage));
    }
    while !responding.is_over() {
        responding.next().await?;
    }
    let Responding { mut choices, head, .. } = responding;
    let (usage, timings) = (usage(&choices, n), timings(&choices));
    let mut whole = head.object(shape.whole(), choices.iter_mut().map(Choice::whole).collect());
    whole.insert("usage".into(), usage);
    whole.insert("timings".into(), timings);
    Ok(respond(StatusCode::OK, &Value::Object(whole)))
}

/// A streamed response.
struct Streamed {
    responding: Responding,
    include_usage: bool,
    ready: VecDeque<Event>,
    ended: bool,
}

impl Streamed {
    fn push(&mut self, mut chunk: Map<String, Value>) {
        if self.include_usage {
            chunk.entry("usage").or_insert(Value::Null);
        }
        self.ready.push_back(Event::default().data(Value::Object(chunk).to_string()));
    }

    /// Waits for the next event of the stream.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Streamed)> {
        while self.ready.is_empty() && !self.ended {
            match self.responding.next().await {
                Ok((choice, deltas, ended)) => {
                    let mut parts: Vec<Value> = deltas.into_iter().map(|delta| choice.dress(delta, None)).collect();
                    if ended {
                        let finish = choice.finish();
                        parts.push(choice.dress(choice.shape().last(), Some(finish)));
                    }
                    let mut chunks: Vec<_> = parts.into_iter().map(|part| self.responding.head.chunk(part)).collect();
                    let over = self.responding.is_over();
                    if let Some(last) = chunks.last_mut().filter(|_| over) {
                        last.insert("timings".into(), timings(&self.responding.choices));
                    }
                    chunks.into_iter().for_each(|chunk| self.push(chunk));
                    if over {
                        self.end();
                    }
                }
                Err(error) => {
                    self.ready.push_back(Event::default().data(error.json().to_string()));
                    self.ended = true;
                }
            }
        }
        let event = self.ready.pop_front()?;
        Some((Ok(event), self))
    }

    fn end(&mut self) {
        if self.include_usage {
            let Responding { choices, head, n, .. } = &self.responding;
            let mut chunk = head.object(head.shape().part(), json!([]));
            chunk.insert("usage".into(), usage(choices, *n));
            self.push(chunk);
        }
        self.ready.push_back(Event::default().data("[DONE]"));
        self.ended = true;
    }
}

fn events(responding: Responding, include_usage: bool) -> Response {
    let mut streamed = Streamed { responding, include_usage, ready: VecDeque::new(), ended: false };
    let Responding { choices, head, .. } = &mut streamed.responding;
    if let Some(first) = head.shape().first() {
        let first: Vec<_> = choices.iter_mut().map(|choice| head.chunk(choice.dress(first.clone(), None))).collect();
        first.into_iter().for_each(|chunk| streamed.push(chunk));
    }
    // Keep-alive comments prevent timeouts of proxies while other requests have their turns.
    Sse::new(stream::unfold(streamed, Streamed::next)).keep_alive(KeepAlive::default()).into_response()
}

/// Returns the response to a request for embeddings.
pub fn embeddings(server: &Server, embedded: &Embedded, base64: bool) -> Response {
    let vector = |vector: &Vec<f32>| {
        if !base64 {
            return json!(vector);
        }
        let bytes: Bytes = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
        json!(BASE64_STANDARD.encode(bytes))
    };
    let vectors = embedded.vectors.iter().enumerate();
    let data: Vec<Value> = vectors
        .map(|(index, values)| json!({ "object": "embedding", "index": index, "embedding": vector(values) }))
        .collect();
    let tokens = embedded.prompt_tokens;
    let usage = json!({ "prompt_tokens": tokens, "total_tokens": tokens });
    respond(StatusCode::OK, &json!({ "object": "list", "data": data, "model": server.model, "usage": usage }))
}
