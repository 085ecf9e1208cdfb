//! Times of loading, by phase, and the repacking speed of each format.

use std::rc::Rc;

use backend_api::Format;
use backend_api::format::{Packing, ROW_ALIGN};
use model::{ByteSource, Host, LoadTimes};
use serde::Serialize;

use super::model::rate;
use crate::error::EngineError;
use crate::{Engine, EngineOptions, Progress};

/// Elements of a repacked row: whole blocks of each format.
const K: usize = 2048;
/// Bytes that are repacked at once, as loading does it.
const PIECE: usize = 4 << 20;
/// Number of runs of which the fastest counts, since disturbances only make a run longer.
const RUNS: usize = 4;

/// Repacking speed of a format, with one thread.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RepackRate {
    /// The format's name.
    pub format: &'static str,
    /// Speed.
    ///
    /// *Units*: 10^9 bytes of the file a second.
    pub gb_per_s: f64,
}

/// Results of loading. Field names are stable: other programs read the JSON.
#[derive(Debug, Clone, Serialize)]
pub struct LoadReport {
    /// The kind of backend.
    pub backend: &'static str,
    /// The device.
    pub adapter: String,
    /// The model, as the caller names it.
    pub model: String,
    /// Whether cached results of an earlier selection chose the backend.
    pub remembered: bool,
    /// Number of self-tests that selection ran.
    pub proofs: usize,
    /// Time of reading the header, choosing the backend, and starting compilation.
    ///
    /// *Units*: milliseconds.
    pub open_ms: f64,
    /// Times of uploading the weights.
    pub loading: LoadTimes,
    /// Time of waiting for the programs of short prompts after the weights were uploaded.
    ///
    /// *Units*: milliseconds.
    pub compile_ms: f64,
    /// Repacking speed of each format.
    pub repack: Vec<RepackRate>,
}

/// Loads a model, and repacks some bytes of each format.
///
/// *Errors*: as [`Engine::load`].
pub async fn load(
    name: &str,
    source: &dyn ByteSource,
    engine: &EngineOptions,
    host: Rc<dyn Host>,
    loading: &mut dyn FnMut(Progress),
    progress: &mut dyn FnMut(&str),
) -> Result<LoadReport, EngineError> {
    let engine = EngineOptions { prepare: true, ..engine.clone() };
    let start = host.now_ms();
    let engine = Engine::load(source, &engine, host.clone(), loading).await?;
    let loaded = host.now_ms();
    if engine.model().recipe().pooling().is_some() {
        engine.embedder()?.settle(&*host).await?;
    } else {
        engine.session()?.settle(&*host).await?;
    }
    let (times, report, info) = (engine.model().load_times(), engine.report(), engine.backend().info());
    let compile_ms = host.now_ms() - loaded;
    progress("repacking");
    Ok(LoadReport {
        backend: info.name,
        adapter: info.adapter.clone(),
        model: name.into(),
        remembered: report.remembered,
        proofs: report.proofs,
        open_ms: (loaded - start - times.total_ms).max(0.0),
        loading: times,
        compile_ms,
        repack: repack(&*host).await?,
    })
}

async fn repack(host: &dyn Host) -> Result<Vec<RepackRate>, EngineError> {
    let mut rates = Vec::with_capacity(Format::ALL.len());
    // Any bytes do: no code path depends on them.
    let bytes: Vec<u8> = (0..PIECE).map(|i| (i.wrapping_mul(7919) >> 5) as u8).collect();
    for format in Format::ALL {
        let row = format.row_bytes(K)?;
        let rows = PIECE / row / ROW_ALIGN * ROW_ALIGN;
        let (packing, bytes) = (Packing::new(*format, rows, K)?, &bytes[..rows * row]);
        let mut least = f64::INFINITY;
        for _ in 0..RUNS {
            let start = host.now_ms();
            packing.repack(0, bytes, &mut |_, plane| {
                std::hint::black_box(plane);
                Ok(())
            })?;
            least = least.min(host.now_ms() - start);
            host.turn().await;
        }
        rates.push(RepackRate { format: format.name(), gb_per_s: rate(bytes.len() as f64, least) / 1e9 });
    }
    Ok(rates)
}
