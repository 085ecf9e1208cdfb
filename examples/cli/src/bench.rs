//! `bench`: prefill and decode, several times over.

use crate::args::{BenchArgs, DeviceArgs};
use crate::load::Loaded;
use crate::output;
use anyhow::{Result, bail};
use indicatif::ProgressBar;
use model::GenerateOptions;
use serde::Serialize;

#[derive(Debug, Serialize)]
struct Report<'a> {
    backend: &'a str,
    adapter: &'a str,
    model: &'a str,
    prefill_tokens: usize,
    decode_tokens: usize,
    load_ms: f64,
    /// The run that is not counted: it compiles the programs.
    warm_up_ms: f64,
    prefill_ms: Spread,
    prefill_tokens_per_s: f64,
    decode_ms_per_token: Spread,
    decode_tokens_per_s: f64,
    device_memory_bytes: u64,
}

/// The middle and the ends of several measurements.
#[derive(Debug, Serialize)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
    n: usize,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        let (n, at) = (values.len(), |i: usize| values.get(i).copied().unwrap_or_default());
        Spread { median: (at(n.saturating_sub(1) / 2) + at(n / 2)) / 2.0, min: at(0), max: at(n.saturating_sub(1)), n }
    }
}

/// Runs `bench`.
pub fn run(args: &BenchArgs, device: &DeviceArgs) -> Result<()> {
    if args.prefill == 0 || args.decode == 0 {
        bail!("--prefill and --decode must be at least 1");
    }
    let loaded = Loaded::new(&args.load, device)?;
    // Any ids will do: no operator's time depends on values.
    let n_vocab = loaded.n_vocab() as u32;
    let prompt: Vec<u32> = (0..args.prefill as u32).map(|i| i.wrapping_mul(7919) % n_vocab.max(1)).collect();
    // One token more: the first comes with the prefill.
    let options = GenerateOptions {
        max_tokens: args.decode + 1,
        stop_tokens: Some(Vec::new()),
        ..loaded.generate_options(args.fetch_interval)
    };
    let (mut prefill, mut decode, mut warm_up_ms, mut memory) = (Vec::new(), Vec::new(), 0.0, 0);
    let bar = ProgressBar::new(u64::from(args.repeat) + 1);
    for run in 0..=args.repeat {
        let generation = loaded.generate(&prompt, &options, &mut |_| ())?;
        if generation.tokens.len() <= args.decode {
            bail!(
                "the context is too short for {} + {} tokens; use smaller numbers or a larger --n-ctx",
                args.prefill,
                args.decode
            );
        }
        memory = generation.steady.memory;
        if run == 0 {
            warm_up_ms = generation.prefill_ms + generation.decode_ms_per_token * args.decode as f64;
        } else {
            prefill.push(generation.prefill_ms);
            decode.push(generation.decode_ms_per_token);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let (prefill_ms, decode_ms_per_token) = (Spread::of(prefill), Spread::of(decode));
    let info = loaded.info();
    let report = Report {
        backend: info.name,
        adapter: &info.adapter,
        model: &loaded.name,
        prefill_tokens: args.prefill,
        decode_tokens: args.decode,
        load_ms: loaded.load_ms(),
        warm_up_ms,
        prefill_tokens_per_s: 1000.0 * args.prefill as f64 / prefill_ms.median,
        decode_tokens_per_s: 1000.0 / decode_ms_per_token.median,
        prefill_ms,
        decode_ms_per_token,
        device_memory_bytes: memory,
    };
    if args.json {
        output::json(&report)?;
    } else {
        let line = |s: &Spread| format!("{:.2} ms (min {:.2}, max {:.2}, n {})", s.median, s.min, s.max, s.n);
        output::text(&format!(
            "{} on {} ({})\nload     {:.0} ms, then {:.0} ms for the first run\nprefill  {} tokens: {}, {:.1} tokens/s\n\
             decode   {} tokens: each {}, {:.1} tokens/s\nmemory   {:.1} MiB on the device\n",
            report.model,
            report.backend,
            report.adapter,
            report.load_ms,
            report.warm_up_ms,
            report.prefill_tokens,
            line(&report.prefill_ms),
            report.prefill_tokens_per_s,
            report.decode_tokens,
            line(&report.decode_ms_per_token),
            report.decode_tokens_per_s,
            report.device_memory_bytes as f64 / f64::from(1 << 20),
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(Spread::of(vec![3.0, 1.0, 2.0]).median, 2.0);
        let even = Spread::of(vec![4.0, 1.0, 2.0, 3.0]);
        assert_eq!((even.median, even.min, even.max, even.n), (2.5, 1.0, 4.0, 4));
    }
}
