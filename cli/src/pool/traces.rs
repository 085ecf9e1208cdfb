//! The last steps in the format of Chrome's tracing, which Perfetto and browsers show.

use anygpu_pool::dispatch::Trace;
use serde_json::{Value, json};

/// Formats the traces. A text is shown as a process. Its first row has its steps, and each stage has a row below, in
/// the order of the chain. Gaps within a step are the time between one stage and the next.
pub fn shown(traces: &[Trace]) -> Value {
    let events = traces.iter().flat_map(|trace| {
        let what = if trace.rows == 1 { "token" } else { "prompt" };
        let step = json!({
            "name": what, "ph": "X", "ts": trace.sent, "dur": trace.ended - trace.sent, "pid": trace.text, "tid": 0,
            "args": { "position": trace.position, "rows": trace.rows },
        });
        let stages = trace.stages.iter().enumerate().map(|(at, stage)| {
            let took = u64::from(stage.took);
            json!({
                "name": stage.worker, "ph": "X", "ts": stage.heard.saturating_sub(took), "dur": took, "pid": trace.text,
                "tid": at + 1, "args": { "position": trace.position },
            })
        });
        std::iter::once(step).chain(stages).collect::<Vec<_>>()
    });
    json!({ "displayTimeUnit": "ms", "traceEvents": events.collect::<Vec<_>>() })
}
