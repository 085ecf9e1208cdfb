//! Connections: their number, their timeouts, and their end.

use super::{Phase, reached};
use axum::Router;
use axum::http::Uri;
use axum::http::uri::PathAndQuery;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Most connections at a time. Others wait in the system's queue.
const MOST: usize = 512;
/// Timeout for the head of a request, after which an idle connection is closed as well.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause after the system could not accept a connection, because too many files are open.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves connections until the server stops and running requests have finished.
pub async fn serve(listener: TcpListener, app: Router, mut phase: watch::Receiver<Phase>) {
    let stopping = phase.clone();
    let (places, mut connections) = (Arc::new(Semaphore::new(MOST)), JoinSet::new());
    let accept = async || {
        let place = places.clone().acquire_owned().await;
        (listener.accept().await, place)
    };
    loop {
        tokio::select! {
            () = reached(&mut phase, Phase::Stopping) => break,
            (accepted, place) = accept() => match accepted {
                Ok((stream, from)) => {
                    let (app, phase) = (app.clone(), stopping.clone());
                    connections.spawn(async move {
                        answer(stream, Client(from.ip()), app, phase).await;
                        drop(place);
                    });
                }
                Err(_) => sleep(PAUSE).await,
            },
            // Removes connections that have ended.
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// The client's address, which each request gets as an extension.
#[derive(Debug, Clone, Copy)]
pub struct Client(pub IpAddr);

/// Returns the path with superfluous slashes removed and a missing `/v1` added, if it needs that. Clients append paths
/// to whatever base URL a user gave them.
fn straightened(uri: &Uri) -> Option<Uri> {
    const ROOTS: [&str; 4] = ["models", "chat", "completions", "embeddings"];
    let mut names: Vec<&str> = uri.path().split('/').filter(|name| !name.is_empty()).collect();
    if names.first().is_some_and(|name| ROOTS.contains(name)) {
        names.insert(0, "v1");
    }
    let path = format!("/{}", names.join("/"));
    if path == uri.path() || !uri.path().starts_with('/') {
        return None;
    }
    let path = uri.query().map_or(path.clone(), |query| format!("{path}?{query}"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
    Uri::from_parts(parts).ok()
}

/// Serves one connection. Errors are ignored, because there is nobody to report them to.
async fn answer(stream: TcpStream, from: Client, app: Router, mut phase: watch::Receiver<Phase>) {
    // Each token is sent at once.
    let _ = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    let app = TowerToHyperService::new(app);
    let marked = service_fn(move |mut request: hyper::Request<_>| {
        request.extensions_mut().insert(from);
        if let Some(uri) = straightened(request.uri()) {
            *request.uri_mut() = uri;
        }
        app.call(request)
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), marked));
    let ended = tokio::select! {
        _ = connection.as_mut() => true,
        () = reached(&mut phase, Phase::Stopping) => false,
    };
    if !ended {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_behind_any_address_are_understood() {
        let straight = |path: &str| straightened(&path.parse().unwrap()).map(|uri| uri.to_string());
        for path in ["/", "/v1/models", "/health", "/v1/chat/completions?a=b//", "*"] {
            assert_eq!(straight(path), None, "{path}");
        }
        for (path, expected) in [
            ("/v1//chat/completions", "/v1/chat/completions"),
            ("/v1/models/", "/v1/models"),
            ("//models?a=b", "/v1/models?a=b"),
            ("/chat/completions", "/v1/chat/completions"),
        ] {
            assert_eq!(straight(path).as_deref(), Some(expected), "{path}");
        }
        let whole = straight("http://127.0.0.1:8080/models");
        assert_eq!(whole.as_deref(), Some("http://127.0.0.1:8080/v1/models"));
    }
}
