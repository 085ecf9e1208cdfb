//! `bench`: measures prefill and decode against the rooflines of the device, single operators, loading, and the effect
//! of each design decision.

use crate::args::{BenchArgs, DeviceArgs};
use crate::load::Bar;
use crate::output;
use anygpu::bench::{self, ModelOptions};
use anygpu::native::{NativeHost, block_on};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::fmt::Display;
use std::rc::Rc;

/// Runs `bench`.
pub fn run(args: &BenchArgs, device: &DeviceArgs) -> Result<()> {
    if args.prefill == 0 || args.decode == 0 {
        bail!("--prefill and --decode must be at least 1");
    }
    let name = args.load.model.name();
    let bar = Bar::new(&name)?;
    let host = Rc::new(NativeHost::default());
    let options = ModelOptions {
        depth: args.depth,
        prefill: args.prefill,
        decode: args.decode,
        repeat: args.repeat as usize,
        fetch_interval: args.fetch_interval,
    };
    let engine = args.load.with_room(options.n_ctx()).options(device);
    let (mut loading, mut doing) = (|at| bar.loading(at), |what: &str| bar.doing(what));
    if args.ops {
        let report = block_on(bench::ops(&engine.select, args.queued, &*host, &mut doing));
        bar.clear();
        return show(&report?, args.json);
    }
    let source = args.load.model.open()?;
    if args.loading {
        let report = block_on(bench::load(&name, &*source, &engine, host, &mut loading, &mut doing));
        bar.clear();
        return show(&report.with_context(|| name.clone())?, args.json);
    }
    if let Some(texts) = args.conversations {
        let report = bench::together(&name, &*source, &engine, &options, texts, host, &mut loading, &mut doing);
        let report = block_on(report).with_context(|| name.clone());
        bar.clear();
        return show(&report?, args.json);
    }
    if args.ablate {
        let report = bench::ablate(&name, &*source, &engine, &options, &*host, &mut loading, &mut doing);
        let report = block_on(report).with_context(|| name.clone());
        bar.clear();
        return show(&report?, args.json);
    }
    let report = bench::run(&name, &*source, &engine, &options, host, &mut loading, &mut doing);
    let report = block_on(report).with_context(|| name.clone());
    bar.clear();
    show(&report?, args.json)
}

fn show(report: &(impl Serialize + Display), json: bool) -> Result<()> {
    Ok(if json { output::json(report) } else { output::text(&report.to_string()) }?)
}
