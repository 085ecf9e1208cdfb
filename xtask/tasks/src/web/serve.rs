//! The server, on loopback only: `dist` as a static host would serve it, and what automated runs need.
//!
//! | path | what it answers |
//! |---|---|
//! | `/` | `dist` |
//! | `/files/NAME` | a model or a reference |
//!
//! Automated runs have these too:
//!
//! | path | what it answers |
//! |---|---|
//! | `/test/` | `js/test/browser` |
//! | `/doubles/` | `js/test/doubles`: what makes calls fail |
//! | `/peers/` | the other engines of `cargo xtask bench --peers` |
//! | `/below/a/path/` | `dist` again, whose workers report their errors: what runs here runs under any path |
//! | `/page/` | `dist` again, whose `index.html` tells when the page shows its first token |
//! | `/policy/` | `dist` again, all of it with the page's Content-Security-Policy as a header; the page collects what it refuses |
//! | `/flaky/NAME?after=BYTES` | the file, but each connection is cut after that many bytes |
//! | `/stall/NAME?after=BYTES` | the same, but instead of being cut the connection stalls |
//! | `/short/NAME?after=BYTES` | that many bytes of the file, as if they were all of it |
//! | `/norange/NAME` | the whole file, whatever range is asked for |
//! | `/wrong/NAME?after=BYTES` | the file, the first time cut; of ranges other bytes, and no header that says so |
//! | `/status/CODE/NAME` | that status |
//! | `/requests` | how often each path was asked for, as JSON |
//! | `/expectations` | the known failures of the conformance suite, as JSON |
//! | POST `/log`, POST `/phase`, POST `/error`, POST `/report` | nothing; the body goes to the run |

mod altered;

use super::dist;
use crate::{root, travel};
use anyhow::{Context, Result};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path as Segment, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{any, get, post};
#[cfg(unix)]
use futures_util::future::{self, Either};
use futures_util::stream::{self, StreamExt};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tower_http::services::{ServeDir, ServeFile};

/// The default port, if it is free.
const USUAL_PORT: u16 = 8080;

/// Where `/files` looks, in this order.
const FILES: &[&str] =
    &["models", "models/cache", "models/fixtures", "models/fixtures/encoders", "model/tests/data", travel::FOLDER];

/// The longest report that a page may send.
const MAX_BODY: usize = 16 << 20;

/// By then the browser has read what was sent before the cut: some browsers drop what they hold when a connection breaks.
const BEFORE_CUT: Duration = Duration::from_millis(250);

/// Range that `/wrong` sends, whatever range is asked for.
const WRONG_RANGE: &str = "bytes=-1000000";

/// Headers that isolate pages from other origins: they may have threads then.
const ISOLATION: [(HeaderName, &str); 3] = [
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-embedder-policy"), "require-corp"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Report of a page of an automated run.
pub enum Event {
    /// A line of progress.
    Log(String),
    /// Begins another phase.
    Phase(String),
    /// An error that nobody handles.
    Error(String),
    /// The result.
    Report(String),
    /// The process is to end.
    Interrupted,
}

/// A running server. It ends when it is dropped.
pub struct Server {
    runtime: Runtime,
    address: SocketAddr,
}

/// State that the handlers of automated runs share.
#[derive(Clone)]
struct Run {
    events: Sender<Event>,
    requests: Arc<Mutex<BTreeMap<String, u64>>>,
}

/// How a file is served badly.
#[derive(Clone, Copy)]
enum Fault {
    Cut,
    Stall,
    Short,
    NoRange,
}

#[derive(serde::Deserialize)]
struct After {
    #[serde(default)]
    after: usize,
}

impl Server {
    /// Starts to serve: with the paths of automated runs if somebody listens, and on request with the headers that isolate
    /// pages, which may have threads then.
    ///
    /// *Errors*: the port is taken, or there is nothing to serve.
    pub fn start(port: Option<u16>, events: Option<Sender<Event>>, isolated: bool) -> Result<Server> {
        let page = dist::folder();
        if !page.is_dir() {
            anyhow::bail!("there is no {}; build it with `cargo xtask web --no-serve`", page.display());
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let listener = runtime.block_on(listen(port, events.is_some()))?;
        let address = listener.local_addr()?;
        if let Some(events) = events.clone() {
            runtime.spawn(async move {
                if interrupted().await.is_ok() {
                    // If nobody listens, the run is over.
                    let _ = events.send(Event::Interrupted);
                }
            });
        }
        let app = match isolated {
            true => app(events).layer(middleware::map_response(isolate)),
            false => app(events),
        };
        runtime.spawn(async move {
            // It ends with the runtime.
            let _ = axum::serve(listener, app).await;
        });
        Ok(Server { runtime, address })
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until Ctrl-C.
    pub fn wait_for_interrupt(self) -> Result<()> {
        self.runtime.block_on(interrupted())?;
        // Downloads that still run are cut: whoever pressed Ctrl-C does not want to wait for them.
        self.runtime.shutdown_background();
        Ok(())
    }
}

/// Waits for Ctrl-C, or for another process that asks this one to end.
#[cfg(unix)]
async fn interrupted() -> io::Result<()> {
    let mut ended = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let interrupt = std::pin::pin!(tokio::signal::ctrl_c());
    match future::select(interrupt, std::pin::pin!(ended.recv())).await {
        Either::Left((interrupt, _)) => interrupt,
        Either::Right(_) => Ok(()),
    }
}

#[cfg(not(unix))]
async fn interrupted() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}

async fn listen(port: Option<u16>, random: bool) -> Result<TcpListener> {
    let at = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    match port {
        Some(port) => at(port).await.with_context(|| format!("cannot listen on port {port}; take another with --port")),
        None if random => Ok(at(0).await?),
        None => match at(USUAL_PORT).await {
            Ok(listener) => Ok(listener),
            Err(_) => Ok(at(0).await?),
        },
    }
}

fn app(events: Option<Sender<Event>>) -> Router {
    let mut app = Router::new().route("/files/{name}", get(file)).fallback_service(ServeDir::new(dist::folder()));
    if let Some(events) = events {
        let run = Run { events, requests: Arc::default() };
        app = app.merge(automated(run.clone())).layer(middleware::from_fn_with_state(run, count));
    }
    app.layer(middleware::from_fn(validators))
}

/// Isolates the page that a response is, or may be part of.
async fn isolate(mut response: Response) -> Response {
    let headers = ISOLATION.map(|(name, value)| (name, HeaderValue::from_static(value)));
    response.headers_mut().extend(headers);
    response
}

/// The paths of automated runs.
fn automated(run: Run) -> Router {
    altered::routes()
        .nest_service("/test", ServeDir::new(root().join("js/test/browser")))
        .nest_service("/doubles", ServeDir::new(root().join("js/test/doubles")))
        .nest_service("/peers", ServeDir::new(crate::bench::peers()))
        .route("/flaky/{name}", get(|name, query, request| faulty(Fault::Cut, name, query, request)))
        .route("/stall/{name}", get(|name, query, request| faulty(Fault::Stall, name, query, request)))
        .route("/short/{name}", get(|name, query, request| faulty(Fault::Short, name, query, request)))
        .route("/norange/{name}", get(|name, query, request| faulty(Fault::NoRange, name, query, request)))
        .route("/wrong/{name}", get(wrong))
        .route("/status/{code}/{name}", any(status))
        .route("/expectations", get(expectations))
        .route("/log", post(|run, line| tell(run, line, Event::Log)))
        .route("/phase", post(|run, name| tell(run, name, Event::Phase)))
        .route("/error", post(|run, error| tell(run, error, Event::Error)))
        .route("/report", post(|run, result| tell(run, result, Event::Report)))
        .route("/requests", get(requests))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(run)
}

/// A model or a reference, by its name alone.
fn find(name: &str) -> Option<PathBuf> {
    let mut parts = Path::new(name).components();
    let (Some(Component::Normal(_)), None) = (parts.next(), parts.next()) else { return None };
    FILES.iter().map(|folder| root().join(folder).join(name)).find(|path| path.is_file())
}

async fn file(Segment(name): Segment<String>, request: Request) -> Response {
    let Some(path) = find(&name) else {
        return (StatusCode::NOT_FOUND, format!("there is no {name} in {}", FILES.join(", "))).into_response();
    };
    match ServeFile::new(path).try_call(request).await {
        Ok(response) => response.map(Body::new),
        Err(error) => internal(&error.into()),
    }
}

async fn faulty(
    fault: Fault,
    name: Segment<String>,
    Query(After { after }): Query<After>,
    mut request: Request,
) -> Response {
    if matches!(fault, Fault::NoRange | Fault::Short) {
        request.headers_mut().remove(header::RANGE);
    }
    let mut response = file(name, request).await;
    match fault {
        Fault::NoRange => {
            response.headers_mut().remove(header::ACCEPT_RANGES);
            response
        }
        Fault::Short => {
            response.headers_mut().remove(header::ACCEPT_RANGES);
            response.headers_mut().insert(header::CONTENT_LENGTH, after.into());
            response.map(|body| ending(body, after, fault))
        }
        Fault::Cut | Fault::Stall => response.map(|body| ending(body, after, fault)),
    }
}

async fn wrong(
    State(run): State<Run>,
    name: Segment<String>,
    Query(After { after }): Query<After>,
    mut request: Request,
) -> Response {
    let first = run.requests.lock().unwrap_or_else(PoisonError::into_inner).get(request.uri().path()) == Some(&1);
    if !request.headers().contains_key(header::RANGE) {
        let response = file(name, request).await;
        return if first { response.map(|body| ending(body, after, Fault::Cut)) } else { response };
    }
    request.headers_mut().insert(header::RANGE, HeaderValue::from_static(WRONG_RANGE));
    let mut response = file(name, request).await;
    response.headers_mut().remove(header::CONTENT_RANGE);
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response
}

/// The first bytes of a body, and then an error, which cuts the connection, or nothing at all.
fn ending(body: Body, after: usize, fault: Fault) -> Body {
    Body::from_stream(stream::unfold((Box::pin(body.into_data_stream()), after), move |(mut body, left)| async move {
        if left == 0 {
            return match fault {
                Fault::Stall => std::future::pending().await,
                Fault::Short => None,
                Fault::Cut | Fault::NoRange => {
                    tokio::time::sleep(BEFORE_CUT).await;
                    Some((Err(axum::Error::new(io::Error::from(io::ErrorKind::ConnectionReset))), (body, left)))
                }
            };
        }
        let part: Result<Bytes, _> = body.next().await?;
        let part = part.map(|bytes| bytes.slice(..bytes.len().min(left)));
        let left = left - part.as_ref().map_or(0, Bytes::len);
        Some((part, (body, left)))
    }))
}

async fn status(Segment((code, name)): Segment<(u16, String)>) -> Response {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST);
    (code, format!("{name}: as you wished")).into_response()
}

/// The known failures, which the suite in a browser cannot read itself.
async fn expectations() -> Response {
    let path = root().join("conformance/expectations.toml");
    let read = || Ok(toml::from_str::<serde_json::Value>(&fs::read_to_string(&path)?)?);
    match read() {
        Ok(expectations) => Json(expectations).into_response(),
        Err(error) => internal(&error),
    }
}

async fn tell(State(run): State<Run>, body: String, event: fn(String) -> Event) -> StatusCode {
    match run.events.send(event(body)) {
        Ok(()) => StatusCode::NO_CONTENT,
        // The run is over.
        Err(_) => StatusCode::GONE,
    }
}

fn internal(error: &anyhow::Error) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}")).into_response()
}

async fn requests(State(run): State<Run>) -> Json<BTreeMap<String, u64>> {
    Json(run.requests.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

/// Counts requests by path.
async fn count(State(run): State<Run>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    *run.requests.lock().unwrap_or_else(PoisonError::into_inner).entry(path).or_default() += 1;
    next.run(request).await
}

/// Entity tags, which files lack: `ETag`, `If-None-Match` and `If-Range`. Whoever resumes a download must be able to
/// tell that the file is still the same one.
async fn validators(request: Request, next: Next) -> Response {
    let asked = request.headers().clone();
    let again = asked.get(header::IF_RANGE).map(|_| copy_without_range(&request));
    let mut response = next.clone().run(request).await;
    let Some(tag) = tag(response.headers()) else { return response };
    if asked.get(header::IF_NONE_MATCH) == Some(&tag) {
        response = StatusCode::NOT_MODIFIED.into_response();
    } else if let (Some(again), StatusCode::PARTIAL_CONTENT) = (again, response.status())
        && asked.get(header::IF_RANGE) != Some(&tag)
    {
        response = next.run(again).await;
    }
    response.headers_mut().insert(header::ETAG, tag);
    // A browser may keep files, but must ask whether they are still the same.
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn copy_without_range(request: &Request) -> Request {
    let mut copy = Request::new(Body::empty());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    // What the router found out about the path.
    *copy.extensions_mut() = request.extensions().clone();
    *copy.headers_mut() = request.headers().clone();
    copy.headers_mut().remove(header::RANGE);
    copy
}

/// The tag of a file: when it was written, and its whole size.
fn tag(headers: &HeaderMap) -> Option<HeaderValue> {
    let modified = headers.get(header::LAST_MODIFIED)?.to_str().ok()?;
    let size = match headers.get(header::CONTENT_RANGE) {
        Some(range) => range.to_str().ok()?.rsplit('/').next()?,
        None => headers.get(header::CONTENT_LENGTH)?.to_str().ok()?,
    };
    let modified: String = modified.chars().filter(char::is_ascii_alphanumeric).collect();
    HeaderValue::from_str(&format!("\"{modified}-{size}\"")).ok()
}
