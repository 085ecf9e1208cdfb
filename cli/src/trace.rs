//! `trace`: lists the kernels of a decode step.

use crate::args::{DeviceArgs, TraceArgs};
use crate::load::Loaded;
use crate::output;
use anygpu::{GenerateOptions, KernelInfo, Overflow, Role};
use anyhow::Result;
use serde_json::json;

/// Number of tokens to decode, to measure the time of a step.
const TIMED: usize = 33;

/// A kernel of a step, and its time if the device can measure that.
type Timed = (KernelInfo, Option<f64>);

/// Runs `trace`.
///
/// If the device can time single kernels, a few steps run with their kernels one by one, which takes longer than a
/// normal step. Otherwise the time of a kernel is null.
pub fn run(args: &TraceArgs, device: &DeviceArgs) -> Result<()> {
    let mut loaded = Loaded::new(&args.load, device)?;
    let kernels = loaded.decode_kernels()?;
    let options = GenerateOptions {
        max_tokens: Some(TIMED),
        overflow: Overflow::Stop,
        stop_tokens: Some(Vec::new()),
        draft_max: Some(0),
        ..loaded.generate_options(None)
    };
    // A file without a tokenizer has tokens all the same, and which one it is does not matter.
    let prompt = if loaded.tokenizer().is_some() { loaded.prompt("")? } else { vec![0] };
    let generation = loaded.generate(&prompt, &options, &mut |_| ())?;
    let step_ms = generation.decode_ms_per_token;
    let times = loaded.profile()?;
    let sum_ms: Option<f64> = times.as_ref().map(|times| times.iter().sum());
    let times = times.unwrap_or_default().into_iter().map(Some).chain(std::iter::repeat(None));
    let kernels: Vec<Timed> = kernels.into_iter().zip(times).collect();
    let groups: Vec<Group> =
        Role::ALL.iter().map(|role| Group::of(*role, &kernels)).filter(|g| g.kernels > 0).collect();
    let (memory, footprint) = loaded.memory()?;
    let programs = memory.saturating_sub(footprint.weights + footprint.states);
    let info = loaded.info();
    if args.json {
        let list: Vec<_> = kernels
            .iter()
            .map(|(k, ms)| {
                json!({
                    "kernel": k.name, "grid": k.grid, "bytes": k.bytes, "ms": ms, "role": k.role.name(),
                    "subject": k.subject,
                })
            })
            .collect();
        let roles: Vec<_> = groups
            .iter()
            .map(|g| json!({ "role": g.role.name(), "kernels": g.kernels, "bytes": g.bytes, "ms": g.ms }))
            .collect();
        let (backend, adapter) = (info.name, &info.adapter);
        output::json(&json!({
            "backend": backend, "adapter": adapter, "model": loaded.name, "step_ms": step_ms, "kernels_ms": sum_ms,
            "kernels": list, "roles": roles,
            "memory": { "weights": footprint.weights, "states": footprint.states, "programs": programs },
        }))?;
        return Ok(());
    }
    output::text(&if args.fold { folded(&kernels) } else { kernels.iter().map(line).collect() })?;
    output::text("\n")?;
    for group in &groups {
        output::text(&format!(
            "{:<12} {:>5} kernels {:>14} bytes {:>11}\n",
            group.role.name(),
            group.kernels,
            group.bytes,
            milliseconds(group.ms)
        ))?;
    }
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    output::text(&format!(
        "memory: {:.1} MB of weights, {:.1} MB of states, {:.1} MB of programs and what lies between kernels\n",
        megabytes(footprint.weights),
        megabytes(footprint.states),
        megabytes(programs)
    ))?;
    let bytes = kernels.iter().map(|(kernel, _)| kernel.bytes).sum::<u64>();
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

/// Sums over the kernels of a role.
struct Group {
    role: Role,
    kernels: usize,
    bytes: u64,
    ms: Option<f64>,
}

impl Group {
    fn of(role: Role, kernels: &[Timed]) -> Group {
        let all = || kernels.iter().filter(|(kernel, _)| kernel.role == role);
        Group {
            role,
            kernels: all().count(),
            bytes: all().map(|(kernel, _)| kernel.bytes).sum(),
            ms: all().map(|(_, ms)| *ms).sum(),
        }
    }
}

fn milliseconds(ms: Option<f64>) -> String {
    ms.map_or("-".into(), |ms| format!("{ms:.4} ms"))
}

fn line((kernel, ms): &Timed) -> String {
    let [x, y, z] = kernel.grid;
    format!(
        "{:<44} {:>16} {:>12} bytes {:>11}  {:<10} {}\n",
        kernel.name,
        format!("{x}x{y}x{z}"),
        kernel.bytes,
        milliseconds(*ms),
        kernel.role.name(),
        kernel.subject
    )
}

/// Returns the block that a kernel belongs to, by the name of its weights or states. A kernel without any belongs to
/// the block of the kernel before it.
fn block_of(subject: &str) -> Option<usize> {
    let (number, _) = subject.strip_prefix("blk.")?.split_once('.')?;
    number.parse().ok()
}

/// Returns the lines of all kernels. Blocks that have the same kernels as the block before share one line.
fn folded(kernels: &[Timed]) -> String {
    let mut parts: Vec<(Option<usize>, &[Timed])> = Vec::new();
    let mut start = 0;
    while start < kernels.len() {
        let block = block_of(&kernels[start].0.subject);
        let ends = |(kernel, _): &Timed| !kernel.subject.is_empty() && block_of(&kernel.subject) != block;
        let end = kernels[start..].iter().position(ends).map_or(kernels.len(), |n| start + n);
        parts.push((block, &kernels[start..end]));
        start = end;
    }
    let same = |a: &[Timed], b: &[Timed]| {
        let kind = |(kernel, _): &Timed| (kernel.name.clone(), kernel.grid, kernel.bytes);
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

    fn kernel(name: &str, subject: &str) -> Timed {
        let (name, subject) = (name.into(), subject.into());
        (KernelInfo { name, grid: [1, 1, 1], bytes: 4, flops: 8, role: Role::Matmul, subject, made: vec![] }, None)
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
