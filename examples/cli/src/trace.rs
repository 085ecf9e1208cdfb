//! `trace`: what a decode step consists of.

use crate::args::{DeviceArgs, TraceArgs};
use crate::load::Loaded;
use crate::output;
use anygpu::GenerateOptions;
use anyhow::Result;
use serde_json::json;

/// Tokens that are decoded to time a step.
const TIMED: usize = 33;

/// Runs `trace`.
///
/// Where the device has a clock for single kernels, a few steps are run with each of them apart, which costs more than a
/// step as it is otherwise; elsewhere the time of a kernel is null.
pub fn run(args: &TraceArgs, device: &DeviceArgs) -> Result<()> {
    let loaded = Loaded::new(&args.load, device)?;
    let kernels = loaded.decode_kernels()?;
    let options = GenerateOptions { max_tokens: TIMED, stop_tokens: Some(Vec::new()), ..loaded.generate_options(None) };
    let generation = loaded.generate(&loaded.prompt("")?, &options, &mut |_| ())?;
    let (step_ms, bytes) = (generation.decode_ms_per_token, kernels.iter().map(|k| k.bytes).sum::<u64>());
    let times = loaded.profile()?;
    let sum_ms: Option<f64> = times.as_ref().map(|times| times.iter().sum());
    let times = times.unwrap_or_default().into_iter().map(Some).chain(std::iter::repeat(None));
    let info = loaded.info();
    if args.json {
        let list: Vec<_> = kernels
            .iter()
            .zip(times)
            .map(|(k, ms)| json!({ "kernel": k.name, "grid": k.grid, "bytes": k.bytes, "ms": ms }))
            .collect();
        let (backend, adapter) = (info.name, &info.adapter);
        output::json(&json!({
            "backend": backend, "adapter": adapter, "model": loaded.name, "step_ms": step_ms, "kernels_ms": sum_ms,
            "kernels": list,
        }))?;
        return Ok(());
    }
    for (kernel, ms) in kernels.iter().zip(times) {
        let [x, y, z] = kernel.grid;
        output::text(&format!(
            "{:<44} {:>16} {:>12} bytes {:>9}\n",
            kernel.name,
            format!("{x}x{y}x{z}"),
            kernel.bytes,
            ms.map_or("-".into(), |ms| format!("{ms:.4} ms"))
        ))?;
    }
    let gigabytes = if step_ms > 0.0 { bytes as f64 / step_ms / 1e6 } else { 0.0 };
    let sum = match sum_ms {
        Some(ms) => format!("the kernels, each apart, sum to {ms:.3} ms, {:.0} % of the step", 100.0 * ms / step_ms),
        None => "this device tells no times of single kernels".into(),
    };
    output::text(&format!(
        "{} on {} ({}): {} kernels, {bytes} bytes, {step_ms:.3} ms a step, {gigabytes:.2} GB/s; {sum}\n",
        loaded.name,
        info.name,
        info.adapter,
        kernels.len(),
    ))?;
    Ok(())
}
