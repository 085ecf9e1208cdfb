//! The cases of llama.cpp's operator suite, read from its own list: every case of a single operator that we have is run, at
//! a threshold no looser than theirs, with inputs from a seed.
//!
//! Three things differ from how llama.cpp judges: errors are relative to the reference, infinities are compared one by
//! one and so excuse nothing else, and inputs are the same on every run.

mod attention;
mod elementwise;
mod images;
mod matrices;
mod moves;
mod operators;
mod products;
mod recurrent;
mod rope;
mod row;
mod rows;
mod views;

use crate::backends::open;
use crate::share::Share;
use anygpu_conformance::report::{BackendReport, Report};
use anygpu_conformance::run::{Outcome, judge, run as run_case};
use anygpu_conformance::variants::Variant;
use anyhow::{Context, Result, ensure};
use backend_api::case::{Case, Fill};
use backend_api::run::NativeHost;
use backend_api::{Backend, Error, Node};
use clap::ValueEnum;
use pollster::block_on;
use reference_cpu::{Cpu, Options};
use row::Row;
use std::collections::{BTreeMap, BTreeSet};

/// Which cases of the list are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Size {
    /// Those that a software GPU makes in a moment.
    Small,
    /// The others, for a night or a GPU.
    Large,
}

/// Largest cost of a case of the small set: operations that the list counts, and bytes of operands and results.
const SMALL_FLOPS: u64 = 10_000_000;
const SMALL_BYTES: u64 = 2_000_000;

impl Size {
    fn of(row: &Row) -> Size {
        if row.flops <= SMALL_FLOPS && row.bytes <= SMALL_BYTES { Size::Small } else { Size::Large }
    }
}

/// Counts of the cases that the list has of an operator.
#[derive(Debug, Default)]
struct Listed {
    /// Cases of this operator alone.
    cases: usize,
    /// Cases that llama.cpp's WebGPU backend says to support.
    webgpu: usize,
    /// Those that are cases of ours.
    ours: usize,
    /// Cases that another row gives, too, since our operands have no strides.
    same: usize,
    /// Different cases, by size.
    small: Vec<Case>,
    large: Vec<Case>,
    /// Why others are not ours.
    reasons: BTreeMap<&'static str, Refused>,
}

/// Cases that are not ours.
#[derive(Debug, Default, Clone, Copy)]
struct Refused {
    cases: usize,
    /// Cases that llama.cpp's WebGPU backend says to support.
    webgpu: usize,
}

/// The list by operator, in its order.
fn listed() -> Result<Vec<(String, Listed)>> {
    let mut all: Vec<(String, Listed)> = Vec::new();
    let mut seen = BTreeSet::new();
    for row in row::rows()?.into_iter().filter(|row| !row.whole_graph) {
        if all.last().is_none_or(|(op, _)| *op != row.op) && !all.iter().any(|(op, _)| *op == row.op) {
            all.push((row.op.clone(), Listed::default()));
        }
        let Some((_, of)) = all.iter_mut().find(|(op, _)| *op == row.op) else { continue };
        of.cases += 1;
        of.webgpu += usize::from(row.webgpu);
        match operators::case(&row) {
            Err(why) => {
                let refused = of.reasons.entry(why).or_default();
                refused.cases += 1;
                refused.webgpu += usize::from(row.webgpu);
            }
            Ok(case) => {
                of.ours += 1;
                if !seen.insert(key(&case)) {
                    of.same += 1;
                } else if Size::of(&row) == Size::Small {
                    of.small.push(case);
                } else {
                    of.large.push(case);
                }
            }
        }
    }
    Ok(all)
}

/// Returns a key that is equal for cases that compute the same.
fn key(case: &Case) -> String {
    let operands = |node: &Node| node.inputs.iter().map(|id| id.index()).collect::<Vec<_>>();
    let ops: Vec<_> = case.graph.nodes().iter().map(|node| (&node.op, operands(node))).collect();
    let operands: Vec<_> = case.graph.externals().map(|(_, tensor)| (&tensor.shape, tensor.dtype)).collect();
    let fills: Vec<_> = case.fills.iter().map(fill_key).collect();
    format!("{ops:?} {operands:?} {fills:?} {:?} {}", case.step, case.tolerance)
}

/// Returns a key of a fill: for many values the sum of their bits, which is shorter than the values.
fn fill_key(fill: &Fill) -> String {
    let Fill::Values(values) = fill else { return format!("{fill:?}") };
    let sum = values.iter().fold(0u64, |sum, v| (sum ^ u64::from(v.to_bits())).wrapping_mul(0x0100_0000_01B3));
    format!("{} values {sum:x}", values.len())
}

/// Runs a share of the cases of a size on the backends among `candidates`; of one of the list's operators only, if asked to.
///
/// *Errors*: a backend that cannot be opened, the name of an operator that the list has not.
pub fn run(candidates: &[&Variant], op: Option<&str>, size: Size, share: Share) -> Result<Report> {
    let mut list = listed()?;
    if let Some(op) = op {
        list.retain(|(name, _)| name.eq_ignore_ascii_case(op));
        ensure!(!list.is_empty(), "the list has no operator {op}");
    }
    let mut backends = Vec::new();
    for candidate in candidates {
        let backend = open(candidate, None).with_context(|| format!("cannot open {}", candidate.name))?;
        let report = BackendReport::new(candidate.name, &backend.info().adapter);
        backends.push((backend, report));
    }
    let reference = Cpu::new(Options { fast: false, ..Options::default() });
    let host = NativeHost::default();
    println!(
        "{:20} {:>6} {:>14} {:>6} {:>6} {:>6} {:>6}",
        "operator", "cases", "peer's WebGPU", "ours", "same", "small", "large"
    );
    for (op, of) in &list {
        let Listed { cases, webgpu, ours, same, small, large, .. } = of;
        if *ours > 0 {
            println!("{op:20} {cases:>6} {webgpu:>14} {ours:>6} {same:>6} {:>6} {:>6}", small.len(), large.len());
            for (why, refused) in &of.reasons {
                println!("{:20} {:>6} {:>14} not ours: {why}", "", refused.cases, refused.webgpu);
            }
        }
        let cases = if size == Size::Small { small } else { large };
        for case in share.pick(cases) {
            let expected = block_on(run_case(&reference, case, &host)).map(|(values, _)| values);
            for (backend, report) in &mut backends {
                let outcome = outcome(&**backend, case, &expected, &host);
                if let Outcome::Failed(why) = &outcome {
                    eprintln!("{} {op} [{}]: {why}", report.name, case.name);
                }
                report.add(op, &case.name, outcome, None);
            }
        }
    }
    summary(&list);
    Ok(Report { backends: backends.into_iter().map(|(_, report)| report).collect() })
}

fn outcome(
    backend: &dyn Backend,
    case: &Case,
    expected: &Result<Vec<backend_api::compare::Values>, Error>,
    host: &NativeHost,
) -> Outcome {
    let expected = match expected {
        Ok(values) => values,
        Err(error) => return Outcome::Failed(format!("the reference failed: {error}")),
    };
    match block_on(run_case(backend, case, host)) {
        Ok((found, expanded)) => judge(&found, expected, case.tolerance_on(backend.info()), expanded),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

/// How much of the list is ours, and why the rest is not.
fn summary(list: &[(String, Listed)]) {
    let sum = |of: fn(&Listed) -> usize| list.iter().map(|(_, listed)| of(listed)).sum::<usize>();
    println!(
        "{} cases of single operators, {} of them supported by the peer's WebGPU; {} are ours, {} of them different: {} small, {} large",
        sum(|of| of.cases),
        sum(|of| of.webgpu),
        sum(|of| of.ours),
        sum(|of| of.ours - of.same),
        sum(|of| of.small.len()),
        sum(|of| of.large.len()),
    );
    let mut reasons: BTreeMap<&str, Refused> = BTreeMap::new();
    for (why, refused) in list.iter().flat_map(|(_, of)| &of.reasons) {
        let sum = reasons.entry(why).or_default();
        sum.cases += refused.cases;
        sum.webgpu += refused.webgpu;
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, refused)| std::cmp::Reverse(refused.cases));
    for (why, Refused { cases, webgpu }) in reasons {
        println!("{cases:>6} not ours, {webgpu:>5} of them the peer's WebGPU's: {why}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_a_case_or_has_a_reason() {
        let list = listed().unwrap();
        let single: usize = list.iter().map(|(_, of)| of.cases).sum();
        // As the peer counts them.
        assert_eq!(single, 19_726);
        assert_eq!(list.iter().map(|(_, of)| of.webgpu).sum::<usize>(), 11_128);
        for (op, of) in &list {
            assert_eq!(of.cases, of.ours + of.reasons.values().map(|of| of.cases).sum::<usize>(), "{op}");
            assert_eq!(of.ours, of.same + of.small.len() + of.large.len(), "{op}");
            let names: BTreeSet<&str> = of.small.iter().chain(&of.large).map(|case| case.name.as_str()).collect();
            assert_eq!(names.len(), of.small.len() + of.large.len(), "{op}");
        }
        let ours: usize = list.iter().map(|(_, of)| of.ours).sum();
        assert!(ours > 1000, "only {ours} are ours");
    }

    #[test]
    fn thresholds_are_no_looser_than_the_list_s() {
        let rows = row::rows().unwrap();
        for row in rows.iter().filter(|row| !row.whole_graph) {
            if let Ok(case) = operators::case(row) {
                assert!(case.tolerance <= row.threshold, "{} {}", row.op, row.text);
            }
        }
    }
}
