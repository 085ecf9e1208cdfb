//! `serve`: an HTTP server for clients of OpenAI's API.

mod answer;
mod connections;
mod error;
mod format;
mod hosts;
mod metrics;
mod prompts;
mod routes;

use crate::args::{DeviceArgs, HttpArgs, ServeArgs};
use crate::signals::Signals;
use crate::{load, output};
use anygpu::Pooling;
use anygpu::handle::{Handle, Limits};
use anyhow::{Context, Result, bail};
use axum::Router;
use axum::http::HeaderValue;
use format::Formats;
use hosts::Hosts;
use metrics::Metrics;
use prompts::Prompts;
use std::future::pending;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Time that running answers get to finish when the server stops.
const GRACE: Duration = Duration::from_secs(5);
/// Time after that for clients to receive the error.
const LAST: Duration = Duration::from_secs(2);
/// Time for the step under way to end and the device to be released: drivers crash where a program ends in the middle of it.
const RELEASE: Duration = Duration::from_secs(15);

/// Phase of the server's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Running,
    /// New requests are refused, and running ones finish.
    Stopping,
    /// Running requests are cancelled.
    Ending,
}

/// Waits until the server is in the phase `wanted` or a later one.
async fn reached(phase: &mut watch::Receiver<Phase>, wanted: Phase) {
    // The sender is dropped only when the server has ended.
    let _ = phase.wait_for(|phase| *phase >= wanted).await;
}

/// State of the server that request handlers share.
struct Server {
    handle: Handle,
    /// The model's name, and its aliases.
    model: String,
    aliases: Vec<String>,
    key: Option<String>,
    /// Most requests at a time.
    queue: usize,
    max_body: usize,
    /// Time at which the server started, since 1970.
    ///
    /// *Units*: seconds.
    started: u64,
    metrics: Metrics,
    formats: Formats,
    prompts: Prompts,
    hosts: Hosts,
    /// Whether fields that have no effect are refused.
    is_strict: bool,
    phase: watch::Receiver<Phase>,
}

impl Server {
    /// Returns whether a request's model name means this model. The name may end with `.gguf`.
    fn is_named(&self, name: &str) -> bool {
        let name = name.strip_suffix(".gguf").unwrap_or(name);
        name == self.model || self.aliases.iter().any(|alias| alias == name)
    }
}

/// Runs `serve`. Returns false: Ctrl-C is the normal way to end it, and does not count as an interruption.
pub fn run(args: &ServeArgs, device: &DeviceArgs) -> Result<bool> {
    let open = async |_| {
        let (handle, thread) = open(args, device).await?;
        Ok(Answering { handle, thread, more: Router::new(), ended: Box::pin(pending()) })
    };
    listen(&args.http, &args.load.model.name(), open)
}

/// The engine behind a server.
pub struct Answering {
    /// Handle that takes requests.
    pub handle: Handle,
    /// Thread that ends when the last handle is dropped.
    pub thread: JoinHandle<()>,
    /// Further routes.
    pub more: Router,
    /// Future that ends with an error if the engine cannot go on.
    pub ended: Pin<Box<dyn Future<Output = anyhow::Error>>>,
}

/// Listens, opens the engine with `open`, and serves it until a signal comes. `open` gets the address.
///
/// *Errors*: the address is in use; those of `open`; the engine has ended.
pub fn listen(http: &HttpArgs, name: &str, open: impl AsyncFnOnce(SocketAddr) -> Result<Answering>) -> Result<bool> {
    let origins = http.cors.iter().map(|origin| allowed(origin)).collect::<Result<Vec<_>>>()?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build().context("cannot start the server")?;
    runtime.block_on(serve(http, name, &origins, open))?;
    Ok(false)
}

/// Parses an origin as browsers send it.
fn allowed(origin: &str) -> Result<HeaderValue> {
    let sound = origin == "*"
        || origin
            .split_once("://")
            .is_some_and(|(scheme, host)| !scheme.is_empty() && !host.is_empty() && !host.contains('/'));
    match HeaderValue::from_str(origin) {
        Ok(value) if sound => Ok(value),
        _ => bail!("{origin:?} is not an origin; give one such as https://example.org, without a path, or *"),
    }
}

async fn serve(
    http: &HttpArgs,
    name: &str,
    origins: &[HeaderValue],
    open: impl AsyncFnOnce(SocketAddr) -> Result<Answering>,
) -> Result<()> {
    let mut signals = Signals::listen().context("cannot listen to Ctrl-C")?;
    // Binds before the model is loaded, which may take long, so that a port in use is reported at once.
    let address = SocketAddr::new(http.host, http.port);
    let listener = TcpListener::bind(address).await.map_err(|error| in_use(error, address))?;
    let address = listener.local_addr().context("cannot listen")?;
    let Answering { handle, thread, more, ended } = tokio::select! {
        opened = open(address) => opened?,
        () = signals.next() => return Ok(()),
    };
    let (say, phase) = watch::channel(Phase::Running);
    let server = Arc::new(Server {
        handle,
        model: name.strip_suffix(".gguf").unwrap_or(name).to_owned(),
        aliases: http.alias.clone(),
        key: http.api_key.clone(),
        queue: http.queue,
        max_body: usize::try_from(http.max_body).unwrap_or(usize::MAX),
        started: answer::now(),
        metrics: Metrics::default(),
        formats: Formats::default(),
        prompts: Prompts::default(),
        hosts: Hosts::new(&http.allowed_host),
        is_strict: http.strict,
        phase: phase.clone(),
    });
    greet(&server, address);
    let router = routes::router(server, origins).merge(more);
    let answered = tokio::spawn(connections::serve(listener, router, phase));
    let outcome = tokio::select! {
        () = signals.next() => Ok(()),
        error = ended => Err(error),
    };
    stop(say, signals, answered, thread).await;
    outcome
}

/// Loads the model on a new thread.
async fn open(args: &ServeArgs, device: &DeviceArgs) -> Result<(Handle, JoinHandle<()>)> {
    let [session_memory, batch_memory] = [args.session_memory, args.batch_memory]
        .map(|bytes| bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)));
    let begun = args.parallel;
    let limits = Limits { requests: args.http.queue, begun, session_memory, batch_memory, ..Limits::default() };
    let (load, draft) = (args.load.clone(), args.draft.clone());
    let (device, pooling) = (device.clone(), args.pooling);
    Handle::spawn(move || load::opened(&load, &draft, &device, pooling), limits).await
}

/// Returns the URL of a server for its own machine.
pub fn reached_at(address: SocketAddr) -> String {
    // A server that listens on all addresses can be reached at this one.
    let host = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => "127.0.0.1".into(),
        IpAddr::V6(ip) if ip.is_unspecified() => "[::1]".into(),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    format!("http://{host}:{}", address.port())
}

/// Prints the server's URL and an example of a request.
fn greet(server: &Server, address: SocketAddr) {
    let status = server.handle.status();
    let Server { model, .. } = server;
    let base = format!("{}/v1", reached_at(address));
    let facts = server.handle.facts();
    let (path, body) = match (facts.pooling, facts.has_chat_template) {
        (Some(Pooling::Rank), _) => {
            ("rerank", r#"{"query": "Where is the cat?", "documents": ["A cat sat down.", "It rains."]}"#)
        }
        (Some(_), _) => ("embeddings", r#"{"input": "A cat sat down."}"#),
        (None, true) => ("chat/completions", r#"{"messages": [{"role": "user", "content": "Why is the sky blue?"}]}"#),
        (None, false) => ("completions", r#"{"prompt": "Once upon a time"}"#),
    };
    let key = if server.key.is_some() { " -H 'Authorization: Bearer KEY'" } else { "" };
    output::note(&format!("serving {model} at {base} on {} ({})", status.backend, status.adapter));
    let cache = facts.kv_cache.map(|cache| format!(", with a KV cache in {cache}")).unwrap_or_default();
    let together = match facts.together {
        0 | 1 => String::new(),
        many => format!("; {many} conversations advance together"),
    };
    output::note(&format!("  {} tokens of context{cache}{together}", facts.n_ctx));
    output::note(&format!("  curl {base}/{path}{key} -H 'Content-Type: application/json' -d '{body}'"));
    if server.key.is_none() && !address.ip().is_loopback() {
        output::note("  anybody who reaches this machine can ask; --api-key lets only those who have the key");
    }
}

fn in_use(error: io::Error, address: SocketAddr) -> anyhow::Error {
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program listens there; end it, or choose another --port (0 is any that is free)"
        }
        io::ErrorKind::PermissionDenied => "choose a --port above 1023",
        io::ErrorKind::AddrNotAvailable => "choose a --host that is an address of this machine",
        _ => "choose another --host or --port",
    };
    anyhow::anyhow!("cannot listen at {address} ({error}); {remedy}")
}

/// Stops the server: lets answers finish for some time, and then cancels them. Another signal ends the program at once.
async fn stop(
    say: watch::Sender<Phase>,
    mut signals: Signals,
    mut answered: tokio::task::JoinHandle<()>,
    thread: JoinHandle<()>,
) {
    // There are no receivers if there is no connection.
    let _ = say.send(Phase::Stopping);
    let ending = async {
        if timeout(GRACE, &mut answered).await.is_err() {
            let _ = say.send(Phase::Ending);
            if timeout(LAST, &mut answered).await.is_err() {
                answered.abort();
            }
        }
        // The last connection drops the last handle, so the thread ends after its step.
        let freed = async {
            while !thread.is_finished() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = timeout(RELEASE, freed).await;
    };
    tokio::select! {
        () = ending => {}
        () = signals.next() => {}
    }
}
