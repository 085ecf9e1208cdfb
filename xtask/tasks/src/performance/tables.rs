//! The tables, in Markdown.

use super::{Buffers, FirstToken, Model, Ops, Peak, Phases, Role, Run};
use std::fmt::Write;

/// A Markdown table; all columns but the first are numbers.
struct Table(String);

impl Table {
    fn new(columns: &[&str]) -> Table {
        let mut table = Table(String::new());
        table.row(columns.iter().map(|c| (*c).to_owned()));
        table.row((0..columns.len()).map(|i| if i == 0 { "---" } else { "---:" }.to_owned()));
        table
    }

    fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        for cell in cells {
            // Writing to a string cannot fail.
            let _ = write!(self.0, "| {cell} ");
        }
        self.0.push_str("|\n");
    }
}

/// Three significant digits.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        0.0 => "0".into(),
        _ => format!("{value:.3}"),
    }
}

/// All tables that the runs have something for, under their headings.
pub(super) fn all(runs: &[Run]) -> String {
    let sections = [
        ("Prefill and decode", models(runs)),
        ("Decode steps by phase", phases(runs)),
        ("Time by role", roles(runs)),
        ("Buffers", buffers(runs)),
        ("Time to the first token", first_token(runs)),
        ("From opening the page to the first token", page(runs)),
        ("Memory of the browser", memory(runs)),
        ("Floors", floors(runs)),
        ("Single operators", ops(runs)),
        ("One decision switched off", ablations(runs)),
        ("Runs", list(runs)),
    ];
    let sections = sections.into_iter().filter(|(_, text)| !text.is_empty());
    sections.map(|(title, text)| format!("## {title}\n\n{text}")).collect::<Vec<_>>().join("\n")
}

fn models(runs: &[Run]) -> String {
    let mut table = Table::new(&[
        "run",
        "model",
        "depth",
        "prefill",
        "tok/s",
        "decode",
        "tok/s (min, max, n)",
        "dispatches",
        "MiB",
        "of the floor",
        "another engine",
    ]);
    for run in runs {
        for m in &run.models {
            let ms = m.decode_ms_per_token;
            // The longest time is the lowest rate.
            let (low, high) = (1000.0 / ms.max, 1000.0 / ms.min);
            let peer = run.peer(m).map_or(String::new(), |peer| {
                format!("{} / {}, {}", number(peer.prefill_tokens_per_s), number(peer.decode_tokens_per_s), peer.engine)
            });
            table.row([
                run.title.clone(),
                m.model.clone(),
                m.depth.to_string(),
                m.prefill_tokens.to_string(),
                number(m.prefill_tokens_per_s),
                m.decode_tokens.to_string(),
                format!("{} ({}, {}, {})", number(m.decode_tokens_per_s), number(low), number(high), ms.n),
                m.stats.dispatches_per_token.map_or(String::new(), |n| format!("{n:.0}")),
                number(m.device_memory_bytes as f64 / f64::from(1 << 20)),
                format!("{:.0} %", 100.0 * m.decode_floor.fraction),
                peer,
            ]);
        }
    }
    if runs.iter().all(|run| run.models.is_empty()) { String::new() } else { table.0 }
}

/// Models of runs that have something to say on each of them.
fn rows(columns: &[&str], runs: &[Run], of: impl Fn(&Model) -> Option<Vec<String>>) -> String {
    let mut table = Table::new(&[&["run", "model", "depth"], columns].concat());
    let mut is_empty = true;
    for (run, model) in runs.iter().flat_map(|run| run.models.iter().map(move |model| (run, model))) {
        let Some(cells) = of(model) else { continue };
        table.row([run.title.clone(), model.model.clone(), model.depth.to_string()].into_iter().chain(cells));
        is_empty = false;
    }
    if is_empty { String::new() } else { table.0 }
}

fn phases(runs: &[Run]) -> String {
    rows(&["encode ms", "queue ms", "fetch ms", "device busy"], runs, |model| {
        let Phases { encode_ms, queue_ms, fetch_ms, utilisation } = model.phases.as_ref()?;
        let busy = format!("{:.0} %", 100.0 * utilisation);
        Some([encode_ms, queue_ms, fetch_ms].map(|ms| number(*ms)).into_iter().chain([busy]).collect())
    })
}

fn roles(runs: &[Run]) -> String {
    rows(&["prefill", "decode"], runs, |model| {
        let shares = |roles: &[Role]| {
            // What would be shown as 0 is left out.
            let percent = |role: &Role| role.percent.filter(|percent| *percent >= 0.05);
            let share = |role: &Role| Some(format!("{} {:.1} %", role.role, percent(role)?));
            Some(roles.iter().filter_map(share).collect::<Vec<_>>().join(", ")).filter(|shares| !shares.is_empty())
        };
        let roles = model.roles.as_ref()?;
        Some(vec![shares(&roles.prefill)?, shares(&roles.decode)?])
    })
}

fn buffers(runs: &[Run]) -> String {
    rows(&["number and MiB of each class"], runs, |model| {
        let mib = |bytes: u64| number(bytes as f64 / f64::from(1 << 20));
        let of = |Buffers { class, count, bytes }: &Buffers| format!("{count} {class} {}", mib(*bytes));
        let classes = model.buffers.iter().map(of).collect::<Vec<_>>();
        (!classes.is_empty()).then(|| vec![classes.join(", ")])
    })
}

fn first_token(runs: &[Run]) -> String {
    let columns = ["run", "model", "depth", "ms", "open", "load", "compile", "prefill", "prefill, warm"];
    let mut table = Table::new(&columns);
    for run in runs {
        for m in &run.models {
            let FirstToken { open_ms, load_ms, compile_ms, prefill_ms, total_ms } = m.first_token;
            let parts = [total_ms, open_ms, load_ms, compile_ms, prefill_ms, m.prefill_ms.median];
            let names = [run.title.clone(), m.model.clone(), m.depth.to_string()];
            table.row(names.into_iter().chain(parts.map(|ms| format!("{ms:.0}"))));
        }
    }
    if runs.iter().all(|run| run.models.is_empty()) { String::new() } else { table.0 }
}

/// The middle of the visits with warm caches, their extremes, and the visit before with empty ones.
fn page(runs: &[Run]) -> String {
    let columns =
        ["run", "asked for", "runs on", "ms (min, max, n)", "start", "open", "load", "compile", "prefill", "cold"];
    let mut table = Table::new(&columns);
    for run in runs {
        for page in &run.page {
            let (warm, total) = (&page.warm, page.warm.total_ms);
            let names = [&run.title, &page.wanted, &page.backend].map(String::clone);
            let all = format!("{:.0} ({:.0}, {:.0}, {})", total.median, total.min, total.max, total.n);
            let parts =
                [warm.start_ms, warm.open_ms, warm.load_ms, warm.compile_ms, warm.prefill_ms, page.cold.total_ms];
            table.row(names.into_iter().chain([all]).chain(parts.map(|ms| format!("{ms:.0}"))));
        }
    }
    if runs.iter().all(|run| run.page.is_empty()) { String::new() } else { table.0 }
}

/// Peaks in MiB; the ratio is that to the other engine of the run.
fn memory(runs: &[Run]) -> String {
    let columns =
        ["run", "model", "engine", "from", "renderers + GPU", "ratio", "renderers", "GPU", "all", "peak while"];
    let mut table = Table::new(&columns);
    let mib =
        |bytes: Option<u64>| bytes.map_or(String::new(), |bytes| format!("{:.0}", bytes as f64 / f64::from(1 << 20)));
    let own = "anygpu";
    for run in runs {
        for entry in &run.memory {
            let Some(peak) = &entry.peak else { continue };
            let peer = run.memory.iter().find(|other| other.engine != own && other.model == entry.model);
            let peer = peer.and_then(|other| other.peak.as_ref()?.renderer_gpu_bytes).filter(|_| entry.engine == own);
            let ratio = peer.zip(peak.renderer_gpu_bytes).map_or(String::new(), |(a, b)| number(b as f64 / a as f64));
            let highest = |peak: &&Peak| peak.renderer_gpu_bytes.unwrap_or(peak.tree_bytes);
            let phase = peak.phases.iter().max_by_key(highest).map_or("", |phase| phase.phase.as_str());
            let sizes = [peak.renderer_bytes, peak.gpu_bytes, Some(peak.tree_bytes)].map(mib);
            let names = [&run.title, &entry.model, &entry.engine, &entry.source].map(String::clone);
            let head = names.into_iter().chain([mib(peak.renderer_gpu_bytes), ratio]);
            table.row(head.chain(sizes).chain([phase.to_owned()]));
        }
    }
    if runs.iter().all(|run| run.memory.is_empty()) { String::new() } else { table.0 }
}

fn floors(runs: &[Run]) -> String {
    let mut table = Table::new(&[
        "run",
        "model",
        "read GB/s",
        "dispatch us",
        "step us",
        "readback ms",
        "floor ms a token",
        "ms a token",
    ]);
    for run in runs {
        for m in &run.models {
            let f = &m.floors;
            let values = [
                f.read_gb_per_s,
                f.dispatch_us,
                f.step_us,
                f.readback_ms.median,
                m.decode_floor.floor_ms,
                m.decode_ms_per_token.median,
            ];
            table.row([run.title.clone(), m.model.clone()].into_iter().chain(values.map(number)));
        }
    }
    if runs.iter().all(|run| run.models.is_empty()) { String::new() } else { table.0 }
}

/// Milliseconds an operator; below, those of the other engine and the ratio.
fn ops(runs: &[Run]) -> String {
    let names = names(runs);
    let mut head = vec!["ms an operator"];
    head.extend(&names);
    let mut table = Table::new(&head);
    for run in runs {
        let Some(own) = &run.ops else { continue };
        let row = |values: &dyn Fn(&str) -> Option<f64>| -> Vec<String> {
            names.iter().map(|name| values(name).map_or(String::new(), number)).collect()
        };
        table.row(std::iter::once(run.title.clone()).chain(row(&|name| own.best(name))));
        if let Some(peer) = run.peer_ops.as_ref().filter(|peer| !peer.ops.is_empty()) {
            let engine = peer.engine.as_deref().unwrap_or("other engine").to_owned();
            table.row(std::iter::once(engine).chain(row(&|name| peer.best(name))));
            let ratio = |name: &str| Some(own.best(name)? / peer.best(name)?);
            table.row(std::iter::once("ratio".to_owned()).chain(row(&ratio)));
        }
    }
    if names.is_empty() { String::new() } else { table.0 }
}

/// The operators that were timed.
fn names(runs: &[Run]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for op in runs.iter().filter_map(|run| run.ops.as_ref()).flat_map(|ops| &ops.ops) {
        if !names.contains(&op.op.as_str()) {
            names.push(&op.op);
        }
    }
    names
}

impl Ops {
    /// The better form of an operator.
    fn best(&self, name: &str) -> Option<f64> {
        self.ops.iter().filter(|op| op.op == name).map(|op| op.ms.median).min_by(f64::total_cmp)
    }
}

fn ablations(runs: &[Run]) -> String {
    let mut out = String::new();
    for run in runs {
        for ablations in &run.ablations {
            let _ = writeln!(out, "{}, {} on {}:\n", run.title, ablations.model, ablations.backend);
            let columns =
                ["without", "prefill tok/s", "ratio", "decode tok/s", "ratio", "dispatches", "submits", "objects"];
            let mut table = Table::new(&columns);
            let count = |count: Option<f64>| count.map_or(String::new(), |n| format!("{n:.0}"));
            for row in &ablations.ablate {
                table.row([
                    row.without.clone(),
                    number(row.prefill_tokens_per_s),
                    number(row.prefill_ratio),
                    number(row.decode_tokens_per_s),
                    number(row.decode_ratio),
                    count(row.dispatches_per_token),
                    count(row.submits_per_token),
                    count(row.gpu_objects_per_token),
                ]);
            }
            out.push_str(&table.0);
            out.push('\n');
        }
    }
    out
}

fn list(runs: &[Run]) -> String {
    let mut table =
        String::from("| run | device | machine | others used | browser | command |\n|---|---|---|---|---|---|\n");
    for run in runs {
        let adapter = run.models.first().map(|m| &m.adapter).or(run.ops.as_ref().map(|ops| &ops.adapter));
        let (title, machine, browser, command) = (&run.title, &run.machine, &run.user_agent, &run.command);
        let isolated = if run.isolated { ", isolated" } else { "" };
        let load = run.other_load.iter().copied().reduce(f64::max);
        let load = load.map_or(String::new(), |load| format!("{:.0} % of the CPUs", 100.0 * load));
        let _ = writeln!(
            table,
            "| {title} | {} | {machine} | {load} | {browser}{isolated} | `{command}` |",
            adapter.map_or("", String::as_str)
        );
    }
    table
}
