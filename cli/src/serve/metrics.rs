//! Metrics in Prometheus's text format.

use anygpu::handle::{Handle, Outcome};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bounds of the histograms: from a token on a fast device to an answer on a slow one.
///
/// *Units*: seconds.
const BOUNDS: [f64; 14] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 300.0];

#[derive(Debug, Default, Clone)]
struct Histogram {
    counts: [u64; BOUNDS.len()],
    count: u64,
    sum: f64,
}

impl Histogram {
    fn add(&mut self, seconds: f64) {
        BOUNDS.iter().zip(&mut self.counts).filter(|(bound, _)| seconds <= **bound).for_each(|(_, count)| *count += 1);
        self.count += 1;
        self.sum += seconds;
    }
}

#[derive(Debug, Default)]
struct Counts {
    /// Number of responses, by path and status.
    requests: BTreeMap<(&'static str, u16), u64>,
    prompt_tokens: u64,
    cached_tokens: u64,
    generated_tokens: u64,
    recoveries: u64,
    waited: Histogram,
    first_token: Histogram,
    token: Histogram,
    whole: Histogram,
}

/// Counts since the start.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Counts>);

impl Metrics {
    /// Locks the counts. A poisoned lock is used anyway: nothing that runs while it is held leaves the counts half
    /// changed.
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a response.
    pub fn responded(&self, path: &'static str, status: u16) {
        *self.counts().requests.entry((path, status)).or_default() += 1;
    }

    /// Counts the recovery from a lost device.
    pub fn recovered(&self) {
        self.counts().recoveries += 1;
    }

    /// Counts the tokens of embedded texts.
    pub fn embedded(&self, tokens: usize) {
        self.counts().prompt_tokens += tokens as u64;
    }

    /// Counts a generated text.
    pub fn generated(&self, outcome: &Outcome) {
        let mut counts = self.counts();
        counts.prompt_tokens += outcome.prompt_tokens as u64;
        counts.cached_tokens += outcome.cached_tokens as u64;
        counts.generated_tokens += outcome.tokens.len() as u64;
        counts.waited.add(outcome.waited_ms / 1e3);
        counts.first_token.add((outcome.waited_ms + outcome.prefill_ms) / 1e3);
        counts.whole.add((outcome.waited_ms + outcome.prefill_ms + outcome.decode_ms) / 1e3);
        if outcome.tokens.len() > 1 {
            counts.token.add(outcome.decode_ms / 1e3 / (outcome.tokens.len() - 1) as f64);
        }
    }

    /// Returns all metrics as text.
    pub fn text(&self, handle: &Handle, model: &str) -> String {
        let counts = self.counts();
        let status = handle.status();
        let mut out = Text::default();
        out.head("info", "gauge", "The model and the device that runs it");
        let labels = [
            ("version", env!("CARGO_PKG_VERSION")),
            ("model", model),
            ("backend", status.backend),
            ("adapter", &status.adapter),
        ];
        out.line("info", &labels, 1.0);
        out.head("requests_total", "counter", "Responses, by path and status");
        for ((path, status), count) in &counts.requests {
            out.line("requests_total", &[("path", path), ("status", &status.to_string())], *count as f64);
        }
        let numbers = [
            ("prompt_tokens_total", "counter", "Tokens of prompts", counts.prompt_tokens),
            ("cached_tokens_total", "counter", "Those of them that had been computed before", counts.cached_tokens),
            ("generated_tokens_total", "counter", "Tokens that were generated", counts.generated_tokens),
            ("recoveries_total", "counter", "Devices that were lost, after which texts went on", counts.recoveries),
            ("requests_in_progress", "gauge", "Requests that are answered or wait", handle.requests() as u64),
            ("conversations_begun", "gauge", "Conversations that take turns", status.begun as u64),
            ("queue_length", "gauge", "Requests that wait to begin", status.waiting as u64),
            ("device_memory_bytes", "gauge", "What the device holds", status.device_memory),
        ];
        for (name, kind, help, value) in numbers {
            out.head(name, kind, help);
            out.line(name, &[], value as f64);
        }
        out.histogram("queue_seconds", "From a request to its first turn", &counts.waited);
        out.histogram("first_token_seconds", "From a request to its first token", &counts.first_token);
        out.histogram("token_seconds", "From one token to the next, turns of others left out", &counts.token);
        out.histogram("answer_seconds", "From a request to its end, turns of others left out", &counts.whole);
        out.0
    }
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP anygpu_{name} {help}.\n# TYPE anygpu_{name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "anygpu_{name}{labels} {value}");
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for (bound, count) in BOUNDS.iter().zip(histogram.counts) {
            self.line(&bucket, &[("le", &bound.to_string())], count as f64);
        }
        self.line(&bucket, &[("le", "+Inf")], histogram.count as f64);
        self.line(&format!("{name}_sum"), &[], histogram.sum);
        self.line(&format!("{name}_count"), &[], histogram.count as f64);
    }
}
