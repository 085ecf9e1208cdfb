//! Cases drawn at random, and for one that fails the simplest that does.

mod draw;
mod images;
mod operators;
mod tensors;

use crate::backends::open;
use anygpu_conformance::report::{BackendReport, Report};
use anygpu_conformance::run::{Outcome, check};
use anygpu_conformance::variants::Variant;
use anyhow::{Context, Result, bail};
use backend_api::Backend;
use backend_api::run::NativeHost;
use draw::Draw;
use operators::Make;
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use reference_cpu::{Cpu, Options};

/// Numbers that a case is drawn from: more than any takes.
const NUMBERS: usize = 32;

/// Cases that are tried in search of a simpler one that fails.
const SHRINKING: u32 = 400;

/// Runs so many random cases of each operator, or of one, on these variants.
pub fn run(candidates: &[&Variant], op: Option<&str>, cases: u32, seed: u64) -> Result<Report> {
    let chosen = || operators::ALL.iter().filter(|(name, _)| op.is_none_or(|op| op == *name));
    if chosen().next().is_none() {
        let known: Vec<_> = operators::ALL.iter().map(|(name, _)| *name).collect();
        bail!("{} has no random cases; there are {}", op.unwrap_or("that"), known.join(", "));
    }
    let mut report = Report::default();
    for candidate in candidates {
        let backend = open(candidate, None).with_context(|| format!("cannot open {}", candidate.name))?;
        let mut entry = BackendReport::new(candidate.name, &backend.info().adapter);
        for (name, make) in chosen() {
            search(&*backend, name, *make, cases, seed, &mut entry);
        }
        report.backends.push(entry);
    }
    Ok(report)
}

/// Runs random cases of an operator until one fails, and then simpler ones.
fn search(backend: &dyn Backend, op: &str, make: Make, cases: u32, seed: u64, report: &mut BackendReport) {
    let reference = Cpu::new(Options { fast: false, ..Options::default() });
    let host = NativeHost::default();
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { cases, max_shrink_iters: SHRINKING, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let passed = std::cell::RefCell::new(Vec::new());
    let found = runner.run(&vec(any::<u16>(), NUMBERS), |numbers| {
        let case = make(&mut Draw::new(&numbers));
        match pollster::block_on(check(backend, &reference, &case, &host)) {
            Outcome::Failed(why) => Err(TestCaseError::fail(why)),
            outcome => {
                passed.borrow_mut().push((case.name, outcome));
                Ok(())
            }
        }
    });
    for (name, outcome) in passed.into_inner() {
        report.add(op, &name, outcome, None);
    }
    match found {
        Ok(()) => {}
        Err(TestError::Fail(why, numbers)) => {
            let case = make(&mut Draw::new(&numbers));
            report.add(op, &case.name, Outcome::Failed(why.to_string()), None);
        }
        Err(TestError::Abort(why)) => report.add(op, "", Outcome::Failed(why.to_string()), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backend_api::case::{Case, Fill};
    use backend_api::op::Scale;
    use backend_api::{Op, StepParams};

    fn cpu() -> Cpu {
        Cpu::new(Options { fast: false, ..Options::default() })
    }

    #[test]
    fn each_operator_makes_cases_that_are_well_formed_and_differ() {
        let mut report = BackendReport::new("reference", "");
        for (name, make) in operators::ALL {
            search(&cpu(), name, *make, 40, 1, &mut report);
            let names: Vec<String> =
                (0..9u16).map(|i| make(&mut Draw::new(&[i.wrapping_mul(7001); NUMBERS])).name).collect();
            assert!(names.iter().any(|other| *other != names[0]), "{name} makes one case only");
        }
        // The reference, held to itself, is exact.
        assert_eq!(report.counts(), (40 * operators::ALL.len(), 0));
    }

    #[test]
    fn the_simplest_case_that_fails_is_reported() {
        // Fails from 10 columns on: nothing agrees with a tolerance below 0.
        let make: Make = |draw| {
            let cols = draw.size(100);
            let mut case = Case::new(Scale { factor: 2.0, bias: 0.0 }, cols.to_string(), StepParams::at(0, 1), |o| {
                vec![o.filled(&[cols], Fill::Uniform(1.0, 2.0))]
            });
            if cols >= 10 {
                case.tolerance = -1.0;
            }
            assert!(case.graph.nodes().iter().all(|node| matches!(node.op, Op::Scale(_))));
            case
        };
        let mut report = BackendReport::new("reference", "");
        search(&cpu(), "scale", make, 100, 1, &mut report);
        assert_eq!(report.ops[0].failures.iter().map(|f| f.case.as_str()).collect::<Vec<_>>(), ["10"]);
    }
}
