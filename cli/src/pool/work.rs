//! `pool work`: joins a pool as a worker.

use super::remote::{Remote, bandwidth, get};
use crate::args::DeviceArgs;
use crate::args::pool::PoolWorkArgs;
use crate::models::agent;
use crate::signals::Signals;
use crate::{output, tune};
use anygpu::native::{NativeHost, block_on};
use anygpu::{Products, select};
use anygpu_pool_nats::{Note, Working, work};
use anygpu_pool_proto::{Hello, Rung, VERSION};
use anygpu_pool_worker::{Worker, guess};
use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use std::path::PathBuf;
use std::rc::Rc;
use tokio::runtime;

/// Most bytes of the coordinator's `pool.json`.
const MOST: u64 = 64 << 10;
/// Most texts whose states the worker holds.
const SESSIONS: u32 = 64;

#[derive(Deserialize)]
struct Pool {
    tcp: String,
    model: Model,
}

#[derive(Deserialize)]
struct Model {
    name: String,
    address: String,
    blocks: u32,
    bytes: u64,
}

/// Runs `pool work`.
pub fn run(args: &PoolWorkArgs, device: &DeviceArgs) -> Result<()> {
    if device.products != Products::default() {
        bail!("others check what a worker computes, and --products int8 computes less exactly; leave it out");
    }
    let coordinator = args.coordinator.trim_end_matches('/');
    let agent = agent();
    let pool = get(&agent, &format!("{coordinator}/pool.json"), None, MOST).map_err(|why| anyhow!(why))?;
    let pool: Pool = serde_json::from_slice(&pool)
        .with_context(|| format!("{coordinator} is not a pool coordinator; give the address that `pool serve` says"))?;
    let (_, report) = block_on(select(None, &device.options(), &NativeHost::default()))?;
    let chosen = report.chosen().map_or("cpu", |rung| rung.name);
    let matvec_ms = report.chosen().and_then(|rung| rung.matvec_ms);
    let rung = match chosen {
        "cpu" => Rung::Cpu,
        name if name.starts_with("webgl") => Rung::Webgl,
        _ => Rung::Webgpu,
    };
    let hello = Hello {
        version: VERSION,
        rung: rung.into(),
        memory: args.memory,
        block_micros: guess(matvec_ms, pool.model.bytes as f64 / f64::from(pool.model.blocks.max(1))),
        bandwidth: bandwidth(&agent, &pool.model.address).map_err(|why| anyhow!(why))?.max(1),
        sessions: SESSIONS,
        ends: args.ends_key.clone().unwrap_or_default(),
        ..Hello::default()
    };
    let kept = if args.no_keep { None } else { Some(chunks()?) };
    let device = device.clone();
    let make = move |name| {
        let models = Box::new(Remote::new(kept));
        Worker::new(name, models, device.options(), Rc::new(NativeHost::default()))
    };
    let note = |note| match note {
        Note::Waiting => output::note("nobody coordinates; waiting"),
        Note::Joined(name) => {
            output::note(&format!("computes {} on {chosen} as {name}; Ctrl-C leaves", pool.model.name));
        }
    };
    let runtime = runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(async {
        let mut signals = Signals::listen().context("cannot listen to Ctrl-C")?;
        Ok(work(Working { server: pool.tcp, hello }, make, note, signals.next()).await?)
    })
}

/// Returns the folder in which chunks of models are kept, and creates it.
fn chunks() -> Result<PathBuf> {
    let folder = tune::folder()?.join("chunks");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}
