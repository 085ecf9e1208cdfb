//! `trace`: what a decode step consists of.

use crate::args::{DeviceArgs, TraceArgs};
use crate::load::Loaded;
use crate::output;
use anyhow::Result;
use model::GenerateOptions;
use serde_json::json;

/// Tokens that are decoded to time a step.
const TIMED: usize = 33;

/// Runs `trace`.
///
/// A step is one submission, so the device can be asked for its time as a whole only; the time of a kernel is null
/// where a backend does not tell it.
pub fn run(args: &TraceArgs, device: &DeviceArgs) -> Result<()> {
    let loaded = Loaded::new(&args.load, device)?;
    let kernels = loaded.decode_kernels()?;
    let options = GenerateOptions { max_tokens: TIMED, stop_tokens: Some(Vec::new()), ..loaded.generate_options(None) };
    let generation = loaded.generate(&loaded.prompt("")?, &options, &mut |_| ())?;
    let (step_ms, bytes) = (generation.decode_ms_per_token, kernels.iter().map(|k| k.bytes).sum::<u64>());
    let info = loaded.info();
    if args.json {
        let list: Vec<_> =
            kernels.iter().map(|k| json!({ "kernel": k.name, "grid": k.grid, "bytes": k.bytes, "ms": null })).collect();
        let (backend, adapter) = (info.name, &info.adapter);
        output::json(
            &json!({ "backend": backend, "adapter": adapter, "model": loaded.name, "step_ms": step_ms, "kernels": list }),
        )?;
        return Ok(());
    }
    for kernel in &kernels {
        let [x, y, z] = kernel.grid;
        output::text(&format!(
            "{:<44} {:>16} {:>12} bytes {:>9}\n",
            kernel.name,
            format!("{x}x{y}x{z}"),
            kernel.bytes,
            "-"
        ))?;
    }
    let gigabytes = if step_ms > 0.0 { bytes as f64 / step_ms / 1e6 } else { 0.0 };
    output::text(&format!(
        "{} on {} ({}): {} kernels, {bytes} bytes, {step_ms:.3} ms a step, {gigabytes:.2} GB/s\n",
        loaded.name,
        info.name,
        info.adapter,
        kernels.len(),
    ))?;
    Ok(())
}
