//! Results of a run: operator by backend, worst NMSE, counts.

use crate::parts::{self, Part};
use crate::run::Outcome;
use backend_api::case::Case;
use serde::Serialize;
use std::fmt::Write;

/// The results of all backends.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// One for each backend that was run or is missing.
    pub backends: Vec<BackendReport>,
}

/// The results of one backend.
#[derive(Debug, Serialize)]
pub struct BackendReport {
    /// Its name in the suite.
    pub name: String,
    /// The device; empty if it is missing.
    pub adapter: String,
    /// Why it was not run.
    pub skipped: Option<String>,
    /// One for each operator.
    pub ops: Vec<OpReport>,
    /// One for each use of a weight format or codec, in no particular order.
    pub parts: Vec<PartReport>,
}

/// The results of the cases that go through a weight format or codec in a certain way.
#[derive(Debug, Serialize)]
pub struct PartReport {
    /// Role of the format or codec in the case.
    pub role: &'static str,
    /// The format or codec.
    pub of: &'static str,
    /// Cases run.
    pub cases: usize,
    /// Cases that failed.
    pub failed: usize,
    /// The largest NMSE of the cases that passed.
    pub worst_nmse: f64,
}

/// The results of one operator on one backend.
#[derive(Debug, Serialize)]
pub struct OpReport {
    /// The operator.
    pub op: String,
    /// Cases run.
    pub cases: usize,
    /// Cases of a form that the backend does not have, so that its nodes ran in others.
    pub expanded: usize,
    /// The largest NMSE of the cases that passed.
    pub worst_nmse: f64,
    /// Failures, expected or not.
    pub failures: Vec<Failure>,
}

/// A case that did not go as expected.
#[derive(Debug, Serialize)]
pub struct Failure {
    /// The case.
    pub case: String,
    /// Reason of the failure.
    pub why: String,
    /// The reason if it was expected to fail; it does not count then.
    pub expected: Option<String>,
}

impl BackendReport {
    /// An empty report of a backend.
    pub fn new(name: &str, adapter: &str) -> BackendReport {
        BackendReport { name: name.into(), adapter: adapter.into(), skipped: None, ops: Vec::new(), parts: Vec::new() }
    }

    /// Adds the outcome of a case of the suite.
    pub fn add_case(&mut self, case: &Case, outcome: Outcome, expected: Option<&str>) {
        for Part { role, of } in parts::of(case) {
            let same = |part: &PartReport| part.role == role && part.of == of;
            let at = self.parts.iter().position(same).unwrap_or_else(|| {
                self.parts.push(PartReport { role, of, cases: 0, failed: 0, worst_nmse: 0.0 });
                self.parts.len() - 1
            });
            let part = &mut self.parts[at];
            part.cases += 1;
            match &outcome {
                Outcome::Passed { nmse, .. } => part.worst_nmse = part.worst_nmse.max(*nmse),
                Outcome::Failed(_) => part.failed += 1,
            }
        }
        self.add(case.op, &case.name, outcome, expected);
    }

    /// Adds the outcome of a case by the name of its operator and its own.
    pub fn add(&mut self, op: &str, case: &str, outcome: Outcome, expected: Option<&str>) {
        if self.ops.last().is_none_or(|last| last.op != op) {
            let empty = OpReport { op: op.into(), cases: 0, expanded: 0, worst_nmse: 0.0, failures: Vec::new() };
            self.ops.push(empty);
        }
        let Some(entry) = self.ops.last_mut() else { return };
        entry.cases += 1;
        let mut fail = |why: String, expected: Option<&str>| {
            entry.failures.push(Failure { case: case.into(), why, expected: expected.map(str::to_owned) });
        };
        match outcome {
            Outcome::Passed { .. } if expected.is_some() => {
                fail("passes, though it is expected to fail; remove the expectation".into(), None);
            }
            Outcome::Passed { nmse, expanded } => {
                entry.worst_nmse = entry.worst_nmse.max(nmse);
                entry.expanded += usize::from(expanded);
            }
            Outcome::Failed(why) => fail(why, expected),
        }
    }

    /// Cases that passed or failed as expected, and cases that failed.
    pub fn counts(&self) -> (usize, usize) {
        let failed = self.ops.iter().flat_map(|op| &op.failures).filter(|f| f.expected.is_none()).count();
        (self.ops.iter().map(|op| op.cases).sum::<usize>() - failed, failed)
    }
}

impl Report {
    /// Passed, failed and skipped: cases, and whole backends that are missing.
    pub fn counts(&self) -> (usize, usize, usize) {
        let (passed, failed) =
            self.backends.iter().map(BackendReport::counts).fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
        (passed, failed, self.backends.iter().filter(|b| b.skipped.is_some()).count())
    }

    fn op_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for op in self.backends.iter().flat_map(|b| &b.ops) {
            if !names.contains(&op.op.as_str()) {
                names.push(&op.op);
            }
        }
        names
    }

    fn cell(&self, backend: &BackendReport, op: &str) -> String {
        let Some(entry) = backend.ops.iter().find(|o| o.op == op) else { return "-".into() };
        let failed = entry.failures.iter().filter(|f| f.expected.is_none()).count();
        match (failed, entry.worst_nmse) {
            (0, 0.0) => format!("exact  {}", entry.cases),
            (0, nmse) => format!("{nmse:.1e}  {}", entry.cases),
            (failed, _) => format!("FAIL {failed}/{}", entry.cases),
        }
    }

    /// The table for a terminal: worst NMSE and number of cases, operator by backend; then every failure.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let ran: Vec<&BackendReport> = self.backends.iter().filter(|b| b.skipped.is_none()).collect();
        // Writing to a string cannot fail.
        let width = self.op_names().iter().map(|op| op.len()).fold(14, usize::max);
        let _ = write!(out, "{:width$}", "operator");
        for backend in &ran {
            let _ = write!(out, "  {:>16}", backend.name);
        }
        out.push('\n');
        for op in self.op_names() {
            let _ = write!(out, "{op:width$}");
            for backend in &ran {
                let _ = write!(out, "  {:>16}", self.cell(backend, op));
            }
            out.push('\n');
        }
        for backend in &self.backends {
            match &backend.skipped {
                Some(why) => {
                    let _ = writeln!(out, "SKIPPED {}: {why}", backend.name);
                }
                None => {
                    let _ = writeln!(out, "{}: {}", backend.name, backend.adapter);
                }
            }
            for op in &backend.ops {
                for failure in &op.failures {
                    let verdict = if failure.expected.is_some() { "expected to fail" } else { "FAILED" };
                    let _ = writeln!(out, "{verdict} {} {} [{}]: {}", backend.name, op.op, failure.case, failure.why);
                }
            }
        }
        out
    }

    /// The table as a page of its own.
    pub fn html(&self) -> String {
        let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let mut out = String::from(concat!(
            "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
            "<title>anygpu conformance</title><style>:root{color-scheme:light dark;font:15px/1.5 system-ui}",
            "body{margin:2rem auto;max-width:70rem;padding:0 1rem}table{border-collapse:collapse;width:100%}",
            "th,td{padding:.35rem .7rem;border-bottom:1px solid #8884;text-align:right;font-variant-numeric:tabular-nums}",
            "th:first-child,td:first-child{text-align:left}.bad{background:#d33;color:#fff}</style>",
            "<h1>anygpu conformance</h1><p>Worst NMSE against the CPU reference, and number of cases.</p>",
            "<table><tr><th>operator"
        ));
        let ran: Vec<&BackendReport> = self.backends.iter().filter(|b| b.skipped.is_none()).collect();
        for backend in &ran {
            let _ = write!(out, "<th title='{}'>{}", escape(&backend.adapter), escape(&backend.name));
        }
        for op in self.op_names() {
            let _ = write!(out, "<tr><td>{}", escape(op));
            for backend in &ran {
                let cell = self.cell(backend, op);
                let class = if cell.starts_with("FAIL") { " class=bad" } else { "" };
                let _ = write!(out, "<td{class}>{}", escape(&cell));
            }
        }
        out.push_str("</table><ul>");
        for backend in &self.backends {
            let what = backend.skipped.as_deref().map_or_else(|| backend.adapter.clone(), |w| format!("skipped: {w}"));
            let _ = write!(out, "<li>{}: {}", escape(&backend.name), escape(&what));
        }
        out.push_str("</ul></html>\n");
        out
    }
}
