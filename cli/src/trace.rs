//! `trace`: lists the kernels of a decode step or of a prompt.

use crate::args::{DeviceArgs, TraceArgs};
use crate::load::Loaded;
use crate::output;
use anygpu::bench::{Buffers, RoleTime, by_role, prompt};
use anygpu::{GenerateOptions, Overflow, TracedKernel};
use anyhow::{Result, bail};
use serde_json::json;

/// Number of tokens to decode, to measure the time of a step.
const TIMED: usize = 33;

/// Runs `trace`.
///
/// If the device can time single kernels, a few steps run with their kernels one by one, which takes longer than normal
/// steps do. Otherwise the time of a kernel is null.
pub fn run(args: &TraceArgs, device: &DeviceArgs) -> Result<()> {
    let before = args.depth.unwrap_or(0);
    let room = [before, args.prefill.unwrap_or(0), TIMED, 1].into_iter().fold(0, usize::saturating_add);
    let mut loaded = Loaded::new(&args.load.with_room(room), device)?;
    let (asked, n_ctx) = (before.saturating_add(args.prefill.unwrap_or(1)), loaded.n_ctx());
    if asked >= n_ctx {
        bail!("{asked} tokens and the next do not fit the context of {n_ctx}; use smaller numbers or a larger --n-ctx");
    }
    let made = |tokens: usize| prompt(tokens, loaded.n_vocab());
    let (text, more) = match (args.depth, args.prefill) {
        // A file without a tokenizer has tokens all the same, and which one it is does not matter.
        (None | Some(0), None) if loaded.tokenizer().is_some() => (loaded.prompt("")?, Vec::new()),
        (None | Some(0), None) => (vec![0], Vec::new()),
        (depth, prefill) => (made(depth.unwrap_or(0)), made(prefill.unwrap_or(0))),
    };
    let step_ms = match more.len() {
        0 => {
            let (step_ms, _) = generated(&mut loaded, &text, TIMED)?;
            args.depth.iter().for_each(|depth| loaded.rewind(*depth));
            step_ms
        }
        _ => {
            let all = [&text[..], &more].concat();
            // The first time it compiles.
            generated(&mut loaded, &all, 1)?;
            loaded.rewind(text.len());
            let (_, prefill_ms) = generated(&mut loaded, &all, 1)?;
            loaded.rewind(text.len());
            prefill_ms
        }
    };
    let kernels = loaded.trace(&more)?;
    let sum_ms: Option<f64> = kernels.iter().map(|kernel| kernel.ms).sum();
    let roles = by_role(&kernels);
    let (memory, footprint) = loaded.memory()?;
    let buffers = loaded.buffers()?;
    let programs = memory.saturating_sub(footprint.weights + footprint.states);
    let info = loaded.info();
    let depth = kernels.first().map_or(0, |kernel| kernel.step.position);
    if args.json {
        let list: Vec<_> = kernels
            .iter()
            .map(|kernel| {
                let (info, bytes, ms) = (&kernel.info, kernel.bytes(), kernel.ms);
                json!({
                    "kernel": info.name, "grid": info.grid, "bytes": bytes, "ms": ms, "role": info.role.name(),
                    "subject": info.subject,
                })
            })
            .collect();
        let (backend, adapter) = (info.name, &info.adapter);
        output::json(&json!({
            "backend": backend, "adapter": adapter, "model": loaded.name,
            "phase": if more.is_empty() { "decode" } else { "prefill" }, "depth": depth, "rows": more.len().max(1),
            "step_ms": step_ms, "kernels_ms": sum_ms, "kernels": list, "roles": roles,
            "memory": { "weights": footprint.weights, "states": footprint.states, "programs": programs },
            "buffers": buffers,
        }))?;
        return Ok(());
    }
    output::text(&if args.fold { folded(&kernels) } else { kernels.iter().map(line).collect() })?;
    output::text("\n")?;
    for RoleTime { role, kernels, bytes, ms, percent } in &roles {
        let percent = percent.map_or(String::new(), |percent| format!(" {percent:>5.1} %"));
        let ms = milliseconds(*ms);
        output::text(&format!("{role:<12} {kernels:>5} kernels {bytes:>14} bytes {ms:>11}{percent}\n"))?;
    }
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let classes =
        buffers.iter().map(|Buffers { class, count, bytes }| format!("{count} {class} {:.1}", megabytes(*bytes)));
    output::text(&format!(
        "memory: {:.1} MB: {}; the rest is staging, inputs and outputs\n",
        megabytes(memory),
        classes.collect::<Vec<_>>().join(", ")
    ))?;
    let bytes = kernels.iter().map(TracedKernel::bytes).sum::<u64>();
    let gigabytes = if step_ms > 0.0 { bytes as f64 / step_ms / 1e6 } else { 0.0 };
    let what = if more.is_empty() { "a step".into() } else { format!("for {} tokens", more.len()) };
    let sum = match sum_ms {
        Some(ms) => format!("the kernels, each apart, sum to {ms:.3} ms, {:.0} % of that", 100.0 * ms / step_ms),
        None => "this device tells no times of single kernels".into(),
    };
    output::text(&format!(
        "{} on {} ({}): {} kernels, {bytes} bytes, {step_ms:.3} ms {what} at depth {depth}, {gigabytes:.2} GB/s; {sum}\n",
        loaded.name,
        info.name,
        info.adapter,
        kernels.len(),
    ))?;
    Ok(())
}

/// Generates so many tokens after a text; returns the time of each, and that of the text.
fn generated(loaded: &mut Loaded, text: &[u32], tokens: usize) -> Result<(f64, f64)> {
    let options = GenerateOptions {
        max_tokens: Some(tokens),
        overflow: Overflow::Stop,
        stop_tokens: Some(Vec::new()),
        draft_max: Some(0),
        ..loaded.generate_options(None)
    };
    let generation = loaded.generate(text, &options, &mut |_| ())?;
    Ok((generation.decode_ms_per_token, generation.prefill_ms))
}

fn milliseconds(ms: Option<f64>) -> String {
    ms.map_or("-".into(), |ms| format!("{ms:.4} ms"))
}

fn line(kernel: &TracedKernel) -> String {
    let [x, y, z] = kernel.info.grid;
    format!(
        "{:<44} {:>16} {:>12} bytes {:>11}  {:<10} {}\n",
        kernel.info.name,
        format!("{x}x{y}x{z}"),
        kernel.bytes(),
        milliseconds(kernel.ms),
        kernel.info.role.name(),
        kernel.info.subject
    )
}

/// Returns the block that a kernel belongs to, by the name of its weights or states. A kernel without any belongs to
/// the block of the kernel before it.
fn block_of(subject: &str) -> Option<usize> {
    let (number, _) = subject.strip_prefix("blk.")?.split_once('.')?;
    number.parse().ok()
}

/// Returns the lines of all kernels. Blocks that have the same kernels as the block before share one line.
fn folded(kernels: &[TracedKernel]) -> String {
    let mut parts: Vec<(Option<usize>, &[TracedKernel])> = Vec::new();
    let mut start = 0;
    while start < kernels.len() {
        let block = block_of(&kernels[start].info.subject);
        let ends = |kernel: &TracedKernel| {
            let subject = &kernel.info.subject;
            !subject.is_empty() && block_of(subject) != block
        };
        let end = kernels[start..].iter().position(ends).map_or(kernels.len(), |n| start + n);
        parts.push((block, &kernels[start..end]));
        start = end;
    }
    let same = |a: &[TracedKernel], b: &[TracedKernel]| {
        let kind = |kernel: &TracedKernel| (kernel.info.name.clone(), kernel.info.grid, kernel.bytes());
        a.iter().map(kind).eq(b.iter().map(kind))
    };
    let (mut text, mut at) = (String::new(), 0);
    while at < parts.len() {
        let (block, lines) = parts[at];
        lines.iter().for_each(|kernel| text += &line(kernel));
        let alike =
            parts[at + 1..].iter().take_while(|(b, l)| block.is_some() && b.is_some() && same(l, lines)).count();
        if let (Some((Some(first), _)), Some((Some(last), _)), true) =
            (parts.get(at + 1), parts.get(at + alike), alike > 0)
        {
            text += &format!("    ... and the same {} for each of blocks {first} to {last}\n", lines.len());
        }
        at += alike + 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anygpu::{KernelInfo, Role, StepParams, Traffic};

    fn kernel(name: &str, subject: &str) -> TracedKernel {
        let (name, subject, traffic) = (name.into(), subject.into(), Traffic::fixed(4));
        let info = KernelInfo { name, grid: [1, 1, 1], traffic, flops: 8, role: Role::Matmul, subject, made: vec![] };
        TracedKernel { info, step: StepParams::at(0, 1), ms: None }
    }

    #[test]
    fn blocks_alike_are_one_line() {
        let mut kernels = vec![kernel("embed", "token_embd.weight")];
        for block in 0..4 {
            kernels.push(kernel("qkv", &format!("blk.{block}.attn_qkv.weight")));
            kernels.push(kernel("attend", ""));
            kernels.push(kernel(if block == 3 { "other" } else { "down" }, &format!("blk.{block}.ffn_down.weight")));
        }
        kernels.push(kernel("head", "output.weight"));
        let text = folded(&kernels);
        let first: Vec<&str> = text.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
        assert_eq!(first, ["embed", "qkv", "attend", "down", "...", "qkv", "attend", "other", "head"]);
        assert!(text.contains("the same 3 for each of blocks 1 to 2"), "{text}");
    }
}
