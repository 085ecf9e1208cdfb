//! Routes of the server, API keys, and request bodies.

use super::answer::{self, How};
use super::connections::Client;
use super::error::{ApiError, respond};
use super::format::Held;
use super::{Phase, Server, reached};
use anygpu::handle::{Embed, Embedded, Encoded, Generate, Prompt};
use anygpu::{ChatOptions, EngineError, Overflow};
use anygpu_openai::{AnswerOptions, EmbedRequest, Notes, RerankRequest, Shape, TextRequest, random, unread_name};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::StreamExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::time::timeout;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

/// Timeout for reading a request body.
const PATIENCE: Duration = Duration::from_secs(60);

/// Header that lists the fields that had no effect.
const WARNING: HeaderName = HeaderName::from_static("x-anygpu-warning");

/// Policy for a full context. Many clients ask for more tokens than any context holds, so the answer ends there.
const OVERFLOW: Overflow = Overflow::Stop;

type Answered = Result<Response, ApiError>;

/// Creates the router. Pages of these origins may send requests.
pub fn router(server: Arc<Server>, origins: &[HeaderValue]) -> Router {
    let keyed = Router::new()
        .route("/v1/models", get(models))
        .route("/v1/models/{model}", get(model))
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(completions))
        .route("/v1/embeddings", post(embeddings))
        .route("/v1/rerank", post(rerank))
        .route("/v1/reranking", post(rerank))
        .route("/rerank", post(rerank))
        .route("/reranking", post(rerank))
        .route("/metrics", get(metrics))
        .fallback(unknown)
        .method_not_allowed_fallback(method)
        .layer(middleware::from_fn_with_state(server.clone(), key));
    let open = Router::new().route("/health", get(health)).method_not_allowed_fallback(method);
    let app = open.merge(keyed).layer(middleware::from_fn_with_state(server.clone(), count));
    let named = middleware::from_fn_with_state(server.clone(), named);
    let app = app.with_state(server);
    if origins.is_empty() {
        return app.layer(named);
    }
    let any = origins.iter().any(|origin| origin == "*");
    let origins = if any { AllowOrigin::any() } else { AllowOrigin::list(origins.to_vec()) };
    let methods = [Method::GET, Method::POST];
    app.layer(
        CorsLayer::new()
            .allow_origin(origins)
            .allow_methods(methods)
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers([WARNING]),
    )
    .layer(named)
}

/// Rejects requests whose `Host` header has a name that is not permitted. A server with a key accepts any name.
async fn named(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let hosts = request.headers().get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
    let mut names = hosts.chain(request.uri().authority().map(|authority| authority.as_str()));
    let foreign = names.find(|name| server.key.is_none() && !server.hosts.admit(name));
    let foreign = foreign.map(|name| name.chars().take(80).collect::<String>());
    let Some(name) = foreign else { return next.run(request).await };
    let message = format!(
        "this server does not go by the name {name:?}; ask it by its address, or start it with --allowed-host and that name"
    );
    ApiError::new(StatusCode::FORBIDDEN, message).with_code("host_not_allowed").into_response()
}

/// Returns the path for metrics. Unknown paths are counted together, so that clients cannot create new ones.
fn counted(path: &str) -> &'static str {
    const KNOWN: [&str; 7] = [
        "/v1/models",
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/embeddings",
        "/v1/rerank",
        "/metrics",
        "/health",
    ];
    KNOWN.into_iter().find(|known| *known == path).unwrap_or("other")
}

async fn count(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let path = counted(request.uri().path());
    let response = next.run(request).await;
    server.metrics.responded(path, response.status().as_u16());
    response
}

/// Rejects requests without the server's key, if there is one.
async fn key(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let Some(key) = &server.key else { return next.run(request).await };
    let given = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
    // The scheme is not secret, and its case does not matter.
    let given = given.split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
    let Some((_, given)) = given else {
        let message = "this server wants a key; send it as Authorization: Bearer KEY";
        return ApiError::new(StatusCode::UNAUTHORIZED, message).with_code("invalid_api_key").into_response();
    };
    if !bool::from(given.trim_ascii().ct_eq(key.as_bytes())) {
        let message = "this is not the key of this server; send the one that it was started with";
        return ApiError::new(StatusCode::UNAUTHORIZED, message).with_code("invalid_api_key").into_response();
    }
    next.run(request).await
}

async fn unknown(request: Request) -> ApiError {
    let path: String = request.uri().path().chars().take(80).collect();
    let message = format!(
        "there is no {path}; there are /v1/models, /v1/chat/completions, /v1/completions, /v1/embeddings, /v1/rerank, /health \
         and /metrics"
    );
    ApiError::new(StatusCode::NOT_FOUND, message).with_code("unknown_url")
}

async fn method(request: Request) -> ApiError {
    let message = format!(
        "{} cannot be asked by {}; use GET or POST as OpenAI's API does",
        request.uri().path(),
        request.method()
    );
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, message)
}

async fn health(State(server): State<Arc<Server>>) -> Answered {
    if *server.phase.borrow() != Phase::Running {
        return Err(ApiError::stopping());
    }
    Ok(respond(StatusCode::OK, &json!({ "status": "ok" })))
}

async fn metrics(State(server): State<Arc<Server>>) -> Response {
    let text = server.metrics.text(&server.handle, &server.model);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

fn described(server: &Server, id: &str) -> Value {
    let facts = server.handle.facts();
    json!({
        "id": id,
        "object": "model",
        "created": server.started,
        "owned_by": "anygpu",
        "architecture": facts.architecture,
        "context_length": facts.n_ctx,
        "pooling": facts.pooling.map(anygpu::Pooling::name),
    })
}

async fn models(State(server): State<Arc<Server>>) -> Response {
    let names = std::iter::once(&server.model).chain(&server.aliases);
    let data: Vec<Value> = names.map(|name| described(&server, name)).collect();
    respond(StatusCode::OK, &json!({ "object": "list", "data": data }))
}

async fn model(State(server): State<Arc<Server>>, Path(name): Path<String>) -> Answered {
    serves(&server, Some(&name))?;
    Ok(respond(StatusCode::OK, &described(&server, &name)))
}

/// Rejects a request for another model. A request without a model name is accepted.
fn serves(server: &Server, name: Option<&str>) -> Result<(), ApiError> {
    let Some(name) = name else { return Ok(()) };
    if server.is_named(name) {
        return Ok(());
    }
    let shown: String = name.chars().take(80).collect();
    let message = format!(
        "the model {shown:?} is not here, but {:?} is; ask for that, or start the server with --alias {shown:?}",
        server.model
    );
    Err(ApiError::new(StatusCode::NOT_FOUND, message).about("model").with_code("model_not_found"))
}

/// Reads the body of a request.
async fn bytes(body: Body, most: usize) -> Result<Vec<u8>, ApiError> {
    let (mut bytes, mut data) = (Vec::new(), body.into_data_stream());
    while let Some(more) = data.next().await {
        let more = more.map_err(|_| ApiError::request("the request was cut off before its end; send all of it"))?;
        if bytes.len() + more.len() > most {
            let message = format!(
                "the request is longer than {most} bytes; send less, or start the server with a larger --max-body"
            );
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        bytes.extend_from_slice(&more);
    }
    Ok(bytes)
}

/// Reads the JSON of a request. Returns it with its length.
async fn body(server: &Server, request: Request) -> Result<(Value, usize), ApiError> {
    if *server.phase.borrow() != Phase::Running {
        return Err(ApiError::stopping());
    }
    if !is_json(request.headers()) {
        // Pages of any origin can send forms without a CORS preflight, but not this content type.
        let message = "the request must be JSON; send it with Content-Type: application/json";
        return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let late = |_| ApiError::new(StatusCode::REQUEST_TIMEOUT, "the request took too long to come; send it again");
    let bytes = timeout(PATIENCE, bytes(request.into_body(), server.max_body)).await.map_err(late)??;
    // Some clients send a file's contents, which may begin with a byte order mark.
    let json = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let value = serde_json::from_slice(json)
        .map_err(|error| ApiError::request(format!("the request is not JSON: {error}; send an object")))?;
    Ok((value, bytes.len()))
}

/// Adds the notes to a response as headers.
fn noted(mut response: Response, notes: Notes) -> Response {
    // Field names come from the client, and headers cannot have all characters.
    let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    let text = |note: String| HeaderValue::try_from(note.chars().map(plain).collect::<String>()).ok();
    let noted = notes.into_noted().into_iter().filter_map(text);
    response.headers_mut().extend(noted.map(|note| (WARNING, note)));
    response
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Returns the idempotency key: a client that repeats a request with it wants the earlier answer.
fn idempotency(headers: &HeaderMap) -> Option<Vec<u8>> {
    headers.get("idempotency-key").map(|key| key.as_bytes().to_vec())
}

/// Returns a hash of two byte strings.
fn number(one: &[u8], other: &[u8]) -> u64 {
    let digest = Sha256::new_with_prefix(one).chain_update(other).finalize();
    digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Adds a key that identifies this answer: the request's idempotency key and the answer's index.
fn keyed(generate: Generate, key: Option<&[u8]>, at: u64) -> Generate {
    match key {
        Some(key) => generate.keyed(number(key, &at.to_le_bytes())),
        None => generate,
    }
}

/// Returns a number for the user: the one that the client names, or else the client's address.
fn user(name: Option<&str>, client: Option<&Client>) -> u64 {
    let address = client.map(|Client(address)| address.to_string()).unwrap_or_default();
    match name {
        Some(name) => number(b"user ", name.as_bytes()),
        None => number(b"address ", address.as_bytes()),
    }
}

/// Returns a prompt as the engine takes it.
fn prompt(given: anygpu_openai::Prompt) -> Prompt {
    match given {
        anygpu_openai::Prompt::Text(text) => Prompt::Text(text),
        anygpu_openai::Prompt::Tokens(tokens) => Prompt::Tokens(tokens),
        anygpu_openai::Prompt::Chat(messages) => Prompt::Chat(messages),
        anygpu_openai::Prompt::Pair(query, document) => Prompt::Pair(query, document),
    }
}

/// Returns the request to the engine for one answer.
fn generate(prompt: &Arc<Encoded>, answer: AnswerOptions) -> Generate {
    let keep = answer.keep;
    let generate = Generate::new(Prompt::Encoded(prompt.clone())).with(move |options| {
        options.overflow = OVERFLOW;
        answer.set(options);
    });
    match keep {
        Some(keep) => generate.keeping(keep),
        None => generate,
    }
}

async fn text(server: Arc<Server>, shape: Shape, request: Request) -> Answered {
    let (key, client) = (idempotency(request.headers()), request.extensions().get::<Client>().copied());
    let (value, length) = body(&server, request).await?;
    let notes = Notes::new(server.is_strict);
    let mut request = TextRequest::read(shape, &value, &notes)?;
    serves(&server, request.model.as_deref())?;
    let (n, queue) = (request.n, server.queue);
    if request.prompts.len() * n > queue {
        let (field, each) = if n > 1 { ("n", "answers") } else { ("prompt", "prompts") };
        let message = format!(
            "a request can ask for {queue} answers, as many as this server has requests at a time; ask for fewer {each}"
        );
        return Err(ApiError::request(message).about(field));
    }
    if let Some(chat) = server.handle.chat()
        && let Some(name) = unread_name(chat, &value["messages"])
    {
        notes.note(&name, "is not read by the template of the model")?;
    }
    let mut held = None;
    if let Some((messages, options)) = request.held.take()
        && let Some(chat) = server.handle.chat()
    {
        let form = chat.call_form(&messages, &options).map_err(EngineError::from)?;
        held = match (form, request.format.take()) {
            (Some(form), _) => Some(Held::calls(form)),
            (None, Some(asked)) => {
                Some(Held::asked(asked, chat.preface(&messages, &options).map_err(EngineError::from)?))
            }
            (None, None) => None,
        };
    }
    let held = held.or_else(|| request.format.take().map(|asked| Held::asked(asked, None)));
    let (overflow, most) = request.room();
    let room = (overflow.unwrap_or(OVERFLOW), most);
    let prompts = std::mem::take(&mut request.prompts).into_iter().map(prompt).collect();
    let encoded = server.prompts.encode(&server.handle, length, prompts, request.chat.clone(), room).await?;
    let user = user(request.user.as_deref(), client.as_ref());
    // Each answer to a prompt has its own seed: that of the request, and those after it.
    let random = random();
    let seed = request.seed(random, random);
    let answers = encoded.iter().flat_map(|prompt| (0..n as u64).map(move |at| (prompt, seed.wrapping_add(at))));
    let answers = answers.map(|(prompt, seed)| generate(prompt, request.answer(seed)));
    let mut generate: Vec<_> = answers.zip(0..).map(|(it, at)| keyed(it, key.as_deref(), at).by(user)).collect();
    if let Some(held) = held {
        generate = server.formats.hold(&server.handle, generate, held).await?;
    }
    let how = How { shape, n, stream: request.stream, include_usage: request.include_usage };
    Ok(noted(answer::text(server, generate, how).await?, notes))
}

async fn chat(State(server): State<Arc<Server>>, request: Request) -> Answered {
    text(server, Shape::Chat, request).await
}

async fn completions(State(server): State<Arc<Server>>, request: Request) -> Answered {
    text(server, Shape::Text, request).await
}

async fn embeddings(State(server): State<Arc<Server>>, request: Request) -> Answered {
    let (value, length) = body(&server, request).await?;
    let notes = Notes::new(server.is_strict);
    let EmbedRequest { texts, dimensions, normalize, model, base64 } = EmbedRequest::read(&value, &notes)?;
    serves(&server, model.as_deref())?;
    let embed = Embed { texts: Vec::new(), dimensions, normalize, scores: false };
    let embedded = embedded(&server, length, texts, embed).await?;
    Ok(noted(answer::embeddings(&server, &embedded, base64), notes))
}

async fn rerank(State(server): State<Arc<Server>>, request: Request) -> Answered {
    let (value, length) = body(&server, request).await?;
    let notes = Notes::new(server.is_strict);
    let request = RerankRequest::read(&value, &notes)?;
    serves(&server, request.model.as_deref())?;
    let embed = Embed { texts: Vec::new(), dimensions: None, normalize: false, scores: true };
    let ranked = embedded(&server, length, request.pairs(), embed).await?;
    // Of several scores, the first says how well a document answers the query.
    let scores: Vec<f32> = ranked.vectors.iter().filter_map(|scores| scores.first().copied()).collect();
    let answer = request.answer(&scores, &server.model, ranked.prompt_tokens);
    Ok(noted(respond(StatusCode::OK, &answer), notes))
}

/// Returns the vectors or scores of texts. `embed` says which.
async fn embedded(
    server: &Server,
    length: usize,
    texts: Vec<anygpu_openai::Prompt>,
    embed: Embed,
) -> Result<Embedded, ApiError> {
    let whole = (Overflow::Error, 0);
    let texts = texts.into_iter().map(prompt).collect();
    let texts = server.prompts.encode(&server.handle, length, texts, ChatOptions::default(), whole).await?;
    let embedded = server.handle.embed(Embed { texts: texts.into_iter().map(Prompt::Encoded).collect(), ..embed })?;
    let mut phase = server.phase.clone();
    let embedded = tokio::select! {
        embedded = embedded => embedded?,
        () = reached(&mut phase, Phase::Ending) => return Err(ApiError::stopping()),
    };
    server.metrics.embedded(embedded.prompt_tokens);
    Ok(embedded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn users_are_whom_a_client_names_or_its_address() {
        let client = |last| Client(IpAddr::from([10, 0, 0, last]));
        let (one, other) = (client(1), client(2));
        assert_eq!(user(Some("ada"), Some(&one)), user(Some("ada"), Some(&other)));
        assert_ne!(user(Some("ada"), Some(&one)), user(Some("bob"), Some(&one)));
        assert_eq!(user(None, Some(&one)), user(None, Some(&client(1))));
        assert_ne!(user(None, Some(&one)), user(None, Some(&other)));
        assert_ne!(user(Some("10.0.0.1"), None), user(None, Some(&one)));
    }
}
