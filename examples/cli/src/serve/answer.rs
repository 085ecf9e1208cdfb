//! Answers in the shapes of OpenAI's API, whole and as streams of events.

use super::error::{ApiError, respond};
use super::request::{Shape, TextRequest, random};
use super::{Phase, Server, reached};
use anygpu::Finish;
use anygpu::handle::{Answer, Embedded, Outcome, Told};
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::{StreamExt, stream};
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// Since 1970.
///
/// *Units*: seconds.
pub fn now() -> u64 {
    UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs())
}

impl Shape {
    fn whole(self) -> &'static str {
        if self == Shape::Chat { "chat.completion" } else { "text_completion" }
    }

    fn part(self) -> &'static str {
        if self == Shape::Chat { "chat.completion.chunk" } else { "text_completion" }
    }
}

/// What all chunks of an answer have in common.
struct Head {
    shape: Shape,
    id: String,
    created: u64,
    model: String,
    fingerprint: String,
}

impl Head {
    fn new(shape: Shape, server: &Server) -> Head {
        let prefix = if shape == Shape::Chat { "chatcmpl" } else { "cmpl" };
        Head {
            shape,
            id: format!("{prefix}-{:016x}{:016x}", random(), random()),
            created: now(),
            model: server.model.clone(),
            fingerprint: format!("anygpu-{}-{}", env!("CARGO_PKG_VERSION"), server.handle.status().backend),
        }
    }

    fn object(&self, object: &str, choices: Value) -> Map<String, Value> {
        let Head { id, created, model, fingerprint, .. } = self;
        let fields = [
            ("id", json!(id)),
            ("object", json!(object)),
            ("created", json!(created)),
            ("model", json!(model)),
            ("system_fingerprint", json!(fingerprint)),
            ("choices", choices),
        ];
        fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
    }

    /// A chunk of one choice.
    fn chunk(&self, mut choice: Value, finish: Option<&str>) -> Map<String, Value> {
        choice["index"] = json!(0);
        choice["logprobs"] = Value::Null;
        choice["finish_reason"] = json!(finish);
        self.object(self.shape.part(), json!([choice]))
    }

    fn piece(&self, text: &str) -> Value {
        if self.shape == Shape::Chat { json!({ "delta": { "content": text } }) } else { json!({ "text": text }) }
    }

    /// What a stream begins with.
    fn first(&self) -> Option<Value> {
        (self.shape == Shape::Chat).then(|| json!({ "delta": { "role": "assistant", "content": "" } }))
    }

    fn last(&self) -> Value {
        if self.shape == Shape::Chat { json!({ "delta": {} }) } else { json!({ "text": "" }) }
    }
}

fn finish(outcome: &Outcome) -> &'static str {
    match outcome.finish {
        Finish::Length => "length",
        Finish::Stop | Finish::Cancelled => "stop",
    }
}

fn usage(outcome: &Outcome) -> Value {
    let (prompt, completion) = (outcome.prompt_tokens, outcome.tokens.len());
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": { "cached_tokens": outcome.cached_tokens },
        "completion_tokens_details": {
            "accepted_prediction_tokens": outcome.accepted_tokens,
            "rejected_prediction_tokens": outcome.drafted_tokens - outcome.accepted_tokens,
        },
    })
}

/// Times, besides what OpenAI's API has.
fn timings(outcome: &Outcome) -> Value {
    let Outcome { waited_ms, prefill_ms, decode_ms, .. } = outcome;
    json!({ "queue_ms": waited_ms, "prefill_ms": prefill_ms, "decode_ms": decode_ms })
}

/// The next event of an answer, unless the server stops before.
async fn next(server: &Server, answer: &mut Answer) -> Result<Told, ApiError> {
    let mut phase = server.phase.clone();
    let told = tokio::select! {
        told = answer.next() => told,
        () = reached(&mut phase, Phase::Ending) => return Err(ApiError::stopping()),
    };
    let told = told.ok_or(anygpu::handle::HandleError::Stopped)??;
    match &told {
        Told::Recovered(to) => {
            server.metrics.recovered();
            let lost = format!("{} was lost ({})", to.from, to.reason);
            crate::output::note(&format!("{lost}; {} went on after {:.0} ms", to.to, to.ms));
        }
        Told::Ended(outcome) => server.metrics.generated(outcome),
        Told::Begun { .. } | Told::Piece { .. } | Told::Overflowed(_) => {}
    }
    Ok(told)
}

/// Answers a request for text. Of a stream the response begins once the request was found sound.
pub async fn text(server: Arc<Server>, shape: Shape, request: TextRequest) -> Result<Response, ApiError> {
    let TextRequest { generate, stream, include_usage, .. } = request;
    let mut answer = server.handle.generate(generate)?;
    next(&server, &mut answer).await?;
    let head = Head::new(shape, &server);
    if stream {
        return Ok(events(server, answer, head, include_usage));
    }
    let outcome = loop {
        if let Told::Ended(outcome) = next(&server, &mut answer).await? {
            break outcome;
        }
    };
    let mut choice = match shape {
        Shape::Chat => json!({ "message": { "role": "assistant", "content": outcome.text, "refusal": null } }),
        Shape::Text => json!({ "text": outcome.text }),
    };
    choice["index"] = json!(0);
    choice["logprobs"] = Value::Null;
    choice["finish_reason"] = json!(finish(&outcome));
    let mut whole = head.object(shape.whole(), json!([choice]));
    whole.insert("usage".into(), usage(&outcome));
    whole.insert("timings".into(), timings(&outcome));
    Ok(respond(StatusCode::OK, &Value::Object(whole)))
}

/// An answer under way.
struct Streamed {
    server: Arc<Server>,
    /// Dropping it cancels: when the client has gone, the server's part of the connection goes, and all of this with it.
    answer: Answer,
    head: Head,
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

    /// Waits for something to say.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Streamed)> {
        while self.ready.is_empty() && !self.ended {
            match next(&self.server, &mut self.answer).await {
                Ok(Told::Piece { text, .. }) if !text.is_empty() => {
                    let chunk = self.head.chunk(self.head.piece(&text), None);
                    self.push(chunk);
                }
                Ok(Told::Ended(outcome)) => self.end(&outcome),
                Ok(_) => {}
                Err(error) => {
                    self.ready.push_back(Event::default().data(error.json().to_string()));
                    self.ended = true;
                }
            }
        }
        let event = self.ready.pop_front()?;
        Some((Ok(event), self))
    }

    fn end(&mut self, outcome: &Outcome) {
        let mut last = self.head.chunk(self.head.last(), Some(finish(outcome)));
        last.insert("timings".into(), timings(outcome));
        self.push(last);
        if self.include_usage {
            let mut chunk = self.head.object(self.head.shape.part(), json!([]));
            chunk.insert("usage".into(), usage(outcome));
            self.push(chunk);
        }
        self.ready.push_back(Event::default().data("[DONE]"));
        self.ended = true;
    }
}

fn events(server: Arc<Server>, answer: Answer, head: Head, include_usage: bool) -> Response {
    let mut streamed = Streamed { server, answer, head, include_usage, ready: VecDeque::new(), ended: false };
    if let Some(first) = streamed.head.first() {
        let chunk = streamed.head.chunk(first, None);
        streamed.push(chunk);
    }
    // Comments keep proxies from giving up while others have their turns.
    Sse::new(stream::unfold(streamed, Streamed::next)).keep_alive(KeepAlive::default()).into_response()
}

/// Embeddings.
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
