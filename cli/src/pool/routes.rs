//! HTTP routes of a coordinator, for workers and people.

use super::file::Served;
use super::traces;
use anygpu_pool::dispatch::{Picture, Trace};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use axum::{Router, body::Bytes};
use serde::Serialize;
use std::fmt::Write;
use std::sync::Arc;
use tokio::sync::watch;
use tower_http::cors::CorsLayer;

/// Everything that a worker needs to know to join.
#[derive(Debug, Clone, Serialize)]
pub struct Pool {
    /// Version of this object.
    pub version: u32,
    /// URL of the NATS server for native workers.
    pub tcp: String,
    /// URL of the NATS server for web pages.
    pub websocket: Option<String>,
    /// The model that the pool computes.
    pub model: PoolModel,
}

/// A pool's model.
#[derive(Debug, Clone, Serialize)]
pub struct PoolModel {
    pub name: String,
    pub address: String,
    /// Digest in hexadecimal digits.
    pub digest: String,
    pub blocks: u32,
    pub bytes: u64,
    /// Memory that a block takes on a worker, with the states of all texts that the worker may hold.
    pub block_bytes: u64,
    /// Memory of the layers before the blocks (the embedding).
    pub embedding_bytes: u64,
    /// Memory of the layers after the blocks (the head).
    pub head_bytes: u64,
    /// Time of the head, as a number of blocks.
    pub head_blocks: f64,
    /// Number of elements in a row of activations.
    pub width: usize,
}

struct Told {
    pool: Pool,
    file: Served,
    picture: watch::Receiver<Picture>,
    traces: watch::Receiver<Vec<Trace>>,
}

/// Creates the routes. Pages of any origin may read them: workers have no secrets from each other.
pub fn router(
    pool: Pool,
    file: Served,
    picture: watch::Receiver<Picture>,
    traces: watch::Receiver<Vec<Trace>>,
) -> Router {
    let told = Arc::new(Told { pool, file, picture, traces });
    Router::new()
        .route("/pool.json", get(async |State(told): State<Arc<Told>>| Json(told.pool.clone())))
        .route("/model.gguf", get(async |State(told): State<Arc<Told>>, headers: HeaderMap| told.file.send(&headers)))
        .route("/model.gguf.manifest", get(manifest))
        .route("/state.json", get(async |State(told): State<Arc<Told>>| Json(told.picture.borrow().clone())))
        .route("/traces.json", get(async |State(told): State<Arc<Told>>| Json(traces::shown(&told.traces.borrow()))))
        .route("/pool/metrics", get(metrics))
        .layer(CorsLayer::permissive())
        .with_state(told)
}

async fn manifest(State(told): State<Arc<Told>>) -> Response {
    ([(header::CONTENT_TYPE, "application/octet-stream")], Bytes::from(told.file.manifest.clone())).into_response()
}

async fn metrics(State(told): State<Arc<Told>>) -> Response {
    let text = text(&told.picture.borrow());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

/// Formats the metrics in Prometheus' text format.
fn text(picture: &Picture) -> String {
    let Picture { chains, spares, workers, waiting, running, serves, tokens, lost, promoted, recruited, .. } = picture;
    let up = chains.iter().filter(|chain| chain.up).count();
    let gauges = [
        ("workers", "Workers that are there.", *workers),
        ("chains_up", "Chains that run.", up),
        ("spares", "Workers that stand by.", spares.len()),
        ("texts_waiting", "Texts that wait for a chain.", *waiting),
        ("texts_running", "Texts on a chain.", *running),
        ("serves", "Whether a chain is up, and no text waits for states that were lost.", usize::from(*serves)),
    ];
    let times = picture.times;
    let seconds = |micros: u64| micros as f64 * 1e-6;
    let counters = [
        ("tokens_total", "Tokens that were told.", *tokens),
        ("workers_lost_total", "Workers that were lost.", *lost),
        ("stages_promoted_total", "Stages that were lost, and a ready spare took over.", *promoted),
        ("stages_exchanged_total", "Stages that a spare has instead of who is hidden or slower.", picture.exchanged),
        ("stages_recruited_total", "Stages that a worker had to be prepared for.", *recruited),
        ("chains_given_up_total", "Chains that were given up.", picture.given_up),
        ("rows_replayed_total", "Rows that were computed again to restore states.", picture.replayed),
        ("steps_again_total", "Steps that were sent again.", picture.again),
        ("checks_total", "Checks in which two workers computed the same.", picture.checked),
        ("checks_disputed_total", "Checks in which they did not.", picture.disputed),
        ("workers_banned_total", "Workers that were banned.", picture.banned),
        ("laps_total", "Laps of one token.", times.lap_count),
        ("ranges_prepared_total", "Ranges that a worker fetched and compiled.", times.prepare_count),
    ];
    let spent = [
        ("seconds_total", "Time since the start.", times.passed),
        ("served_seconds_total", "Time in which a chain was up, and no text waited for lost states.", times.served),
        ("lap_seconds_total", "Time of laps of one token.", times.laps),
        ("step_seconds_total", "What stages took for steps of one row.", times.steps),
        ("prepare_seconds_total", "Time of ranges that were fetched and compiled.", times.prepares),
    ];
    let mut text = String::new();
    let gauges = gauges.map(|(name, help, value)| (name, help, value as f64, "gauge"));
    let counters = counters.map(|(name, help, value)| (name, help, value as f64, "counter"));
    let spent = spent.map(|(name, help, value)| (name, help, seconds(value), "counter"));
    for (name, help, value, kind) in gauges.into_iter().chain(counters).chain(spent) {
        let _ = write!(
            text,
            "# HELP anygpu_pool_{name} {help}\n# TYPE anygpu_pool_{name} {kind}\nanygpu_pool_{name} {value}\n"
        );
    }
    text
}
