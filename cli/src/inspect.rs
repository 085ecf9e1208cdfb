//! `inspect`: describes a file and which backends of this machine would run it. It loads no weights.

use crate::args::{DeviceArgs, InspectArgs, ModelArgs};
use crate::output;
use anygpu::native::{NativeHost, block_on};
use anygpu::{InspectedRung, Inspection, inspect};
use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// Runs `inspect`.
pub fn run(args: &InspectArgs, device: &DeviceArgs) -> Result<()> {
    let model = ModelArgs { model: args.file.clone() };
    let (source, options) = (model.open()?, args.context.options(device));
    let found = block_on(inspect(&*source, &options, &NativeHost::default())).with_context(|| model.name())?;
    if args.json {
        output::json(&found)?;
    } else {
        output::text(&shown(&found))?;
    }
    Ok(())
}

fn shown(found: &Inspection) -> String {
    let unknown = || "not said".to_owned();
    let tokens = |n: Option<u64>| n.map_or_else(unknown, |n| format!("{n} tokens"));
    let mut text = format!("architecture      {}\n", found.architecture);
    text += &format!("name              {}\n", found.name.clone().unwrap_or_else(unknown));
    text += &format!("parameters        {}\n", counted(found.parameters));
    text += &format!("training context  {}\n", tokens(found.n_ctx_train));
    text += &format!("tokenizer         {}\n", found.tokenizer.clone().unwrap_or_else(unknown));
    let mut formats: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for tensor in &found.tensors {
        let (count, bytes) = formats.entry(tensor.format).or_default();
        (*count, *bytes) = (*count + 1, *bytes + tensor.bytes);
    }
    text += &format!("tensors           {}\n", found.tensors.len());
    for (format, (count, bytes)) in formats {
        text += &format!("    {format:<10} {count:>6} {:>12}\n", megabytes(bytes));
    }
    let context = found.n_ctx.map_or(String::new(), |n| format!(", with a context of {n} tokens"));
    text += &format!("here{context}\n");
    found.rungs.iter().for_each(|rung| text += &line(rung));
    text
}

/// Formats a backend candidate: whether it runs the model, and how much memory that takes.
fn line(rung: &InspectedRung) -> String {
    let memory = match (rung.device_bytes, rung.state_bytes) {
        (Some(all), Some(states)) => {
            format!("{} on the device, of which {} for a text", megabytes(all), megabytes(states))
        }
        _ => String::new(),
    };
    let parts: Vec<String> = rung.reasons.iter().cloned().chain((!memory.is_empty()).then_some(memory)).collect();
    format!("    {:<33} {:<4} {}\n", rung.name, if rung.runs { "runs" } else { "no" }, parts.join("; "))
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Formats a number of parameters as models' names have it.
fn counted(n: u64) -> String {
    match n {
        0..1_000_000 => n.to_string(),
        1_000_000..1_000_000_000 => format!("{:.1} million", n as f64 / 1e6),
        _ => format!("{:.2} billion", n as f64 / 1e9),
    }
}
