//! Selection: choices, refusals, and their reasons.

use std::cell::Cell;
use std::future::ready;
use std::rc::Rc;

use anygpu::native::{NativeHost, block_on};
use anygpu::{
    Candidate, Choice, Engine, EngineError, EngineOptions, Outcome, Progress, Proofs, Report, Rung, SelectOptions,
    select, select_telling,
};
use backend_api::Backend;
use model::BytesSource;
use reference_cpu::Cpu;

use crate::GAB;

fn on_cpu() -> EngineOptions {
    EngineOptions { select: SelectOptions { backend: Choice::Cpu, ..Default::default() }, ..Default::default() }
}

fn load(bytes: &[u8], options: &EngineOptions) -> Result<Engine, EngineError> {
    block_on(Engine::load(&BytesSource(bytes), options, Rc::new(NativeHost::default()), &mut |_| {}))
}

#[test]
fn the_cpu_passes_its_self_test_and_the_report_says_so() {
    let host = NativeHost::default();
    let (backend, report) = block_on(select(None, &on_cpu().select, &host)).unwrap();
    assert_eq!(backend.info().name, "cpu");
    assert_eq!(report.chosen, Some("cpu"));
    assert!(report.chosen().unwrap().matvec_ms.unwrap() > 0.0);
    let skipped = report.rungs.iter().filter(|r| matches!(r.outcome, Outcome::Skipped(_))).count();
    assert_eq!(skipped, report.rungs.len() - 1);
    assert_eq!(report.to_string().lines().count(), report.rungs.len());
    let json = serde_json::to_value(&report).unwrap();
    let last = json["rungs"].as_array().unwrap().last().unwrap();
    assert_eq!((last["name"].as_str(), last["outcome"]["kind"].as_str()), (Some("cpu"), Some("chosen")));
}

#[test]
fn automatic_choice_always_finds_something() {
    let (_, report) = block_on(select(None, &SelectOptions::default(), &NativeHost::default())).unwrap();
    assert!(report.chosen().is_some(), "{report}");
    for rung in &report.rungs {
        if let Outcome::Rejected(reason) = &rung.outcome {
            assert!(!reason.is_empty() && !reason.contains('\n'), "{}: {reason}", rung.name);
        }
    }
    println!("{report}");
}

#[test]
fn each_rung_is_told_when_it_is_tried_and_what_came_of_it_is_what_the_report_says() {
    let mut told: Vec<Rung> = Vec::new();
    let host = NativeHost::default();
    let (_, report) =
        block_on(select_telling(None, &SelectOptions::default(), &host, &mut |rung| told.push(rung.clone()))).unwrap();
    assert_eq!((told[0].name, &told[0].outcome), ("cpu", &Outcome::Trying), "what is there at once comes first");
    for rung in &report.rungs {
        let of: Vec<&Rung> = told.iter().filter(|one| one.name == rung.name).collect();
        let tried = !matches!(rung.outcome, Outcome::Skipped(_));
        assert_eq!(of.iter().filter(|one| one.outcome == Outcome::Trying).count(), usize::from(tried), "{}", rung.name);
        assert_eq!(of.last().unwrap().outcome, rung.outcome, "{}", rung.name);
    }
    // At every moment one candidate is the fastest so far, and it was tried before.
    let mut fastest = Vec::new();
    for rung in &told {
        fastest.retain(|name| *name != rung.name);
        fastest.extend((rung.outcome == Outcome::Chosen).then_some(rung.name));
        assert!(fastest.len() <= 1, "{fastest:?}");
    }
    assert_eq!(fastest, [report.chosen.unwrap()]);
}

#[test]
fn what_was_proven_before_is_told_at_once() {
    let load = |options: &EngineOptions| {
        let mut told = Vec::new();
        let mut progress = |progress| match progress {
            Progress::Rung(rung) => told.push((rung.name, rung.outcome)),
            other => drop(other),
        };
        let host = Rc::new(NativeHost::default());
        let engine = block_on(Engine::load(&BytesSource(GAB), options, host, &mut progress)).unwrap();
        (told, engine.report().clone())
    };
    let (first, report) = load(&on_cpu());
    assert!(first.contains(&("cpu", Outcome::Trying)) && first.ends_with(&[("cpu", Outcome::Chosen)]), "{first:?}");
    let mut proven = Proofs::default();
    proven.add(*report.proof.unwrap());
    let select = SelectOptions { proven: Rc::new(proven), ..on_cpu().select };
    let (again, report) = load(&EngineOptions { select, ..on_cpu() });
    assert!(report.remembered);
    let all: Vec<_> = report.rungs.into_iter().map(|rung| (rung.name, rung.outcome)).collect();
    assert_eq!(again, all);
}

#[test]
fn a_story_from_the_embedded_model() {
    let mut seen = Vec::new();
    let host = Rc::new(NativeHost::default());
    let engine = block_on(Engine::load(&BytesSource(GAB), &on_cpu(), host, &mut |p| seen.push(p))).unwrap();
    assert!(seen.contains(&Progress::Selecting));
    assert!(matches!(seen.last(), Some(Progress::Weights { done, total }) if done == total));

    let mut session = engine.session().unwrap();
    let prompt = engine.encode("Once upon a time").unwrap();
    let mut options = engine.generate_options();
    options.max_tokens = Some(8);
    let mut streamed = String::new();
    let mut show = |piece: model::Piece<'_>| streamed.push_str(piece.text);
    let generation = block_on(engine.generate(&mut session, &prompt, &options, &mut show)).unwrap();
    assert_eq!(generation.text, ", there was a little dragon named Iris");
    assert_eq!(streamed, generation.text);
    assert_eq!(engine.encode("").unwrap(), [0]);
}

#[test]
fn files_that_are_no_models_are_one_line_errors() {
    let cut = &GAB[..GAB.len() / 2];
    let other = b"PK\x03\x04 a zip file".as_slice();
    for bytes in [cut, other, b"", &GAB[..100]] {
        let error = load(bytes, &on_cpu()).err().unwrap().to_string();
        assert!(!error.contains('\n') && error.len() < 300, "{error}");
    }
    let long = EngineOptions { n_ctx: Some(1 << 20), ..on_cpu() };
    let error = load(GAB, &long).err().unwrap().to_string();
    assert!(error.contains("1048576") && error.contains("2048"), "{error}");
}

/// A candidate whose backend computes by the plain definitions, and counts how often it was opened.
fn mine(name: &'static str, opened: &Rc<Cell<usize>>) -> Candidate {
    let opened = opened.clone();
    Candidate::new(name, move || {
        opened.set(opened.get() + 1);
        let backend = Cpu::new(reference_cpu::Options { fast: false, ..Default::default() });
        ready(Ok(Box::new(backend) as Box<dyn Backend>))
    })
}

#[test]
fn own_candidates_are_tried_proven_and_explained_like_all_others() {
    let opened = Rc::new(Cell::new(0));
    let absent = || ready(Err(backend_api::Error::Absent { backend: "far", reason: "its cable is out".into() }));
    let candidates =
        vec![Candidate::new("far", absent), mine("mine", &opened), mine("mine, plain", &opened).variant_of("mine")];
    let gpu = SelectOptions { backend: Choice::Gpu, candidates, ..Default::default() };
    let load = |select: &SelectOptions| {
        load(GAB, &EngineOptions { select: select.clone(), ..Default::default() }).unwrap().report().clone()
    };
    let report = load(&gpu);
    assert_eq!((report.chosen, opened.get()), (Some("mine"), 1), "{report}");
    assert!(report.proofs > 0 && report.chosen().unwrap().matvec_ms.unwrap() > 0.0, "{report}");
    let outcome =
        |report: &Report, name: &str| report.rungs.iter().find(|rung| rung.name == name).unwrap().outcome.clone();
    let Outcome::Rejected(why) = outcome(&report, "far") else { panic!("{report}") };
    assert!(why.contains("its cable is out"), "{why}");
    assert_eq!(outcome(&report, "mine, plain"), Outcome::Skipped("a better variant of this backend works".into()));
    assert_eq!(outcome(&report, "webgpu"), Outcome::Skipped("a better backend works".into()));

    // What it passed is remembered.
    let mut proven = Proofs::default();
    proven.add(*report.proof.unwrap());
    let again = load(&SelectOptions { proven: Rc::new(proven), ..gpu.clone() });
    assert_eq!((again.chosen, again.remembered, again.proofs), (Some("mine"), true, 0), "{again}");

    // It is left out by its name, and is not asked when another backend is wanted.
    let mut other = gpu.clone();
    other.leave_out("mine");
    assert_eq!(load(&other).chosen, Some("mine, plain"));
    let before = opened.get();
    let cpu = load(&SelectOptions { backend: Choice::Cpu, ..gpu });
    assert_eq!((cpu.chosen, opened.get()), (Some("cpu"), before), "{cpu}");
}

#[test]
fn an_own_candidate_takes_the_place_of_one_with_its_name() {
    let opened = Rc::new(Cell::new(0));
    let select = SelectOptions { candidates: vec![mine("cpu", &opened)], ..SelectOptions::default() };
    let (_, report) = block_on(select_telling(None, &select, &NativeHost::default(), &mut |_| {})).unwrap();
    assert_eq!((report.rungs.iter().filter(|rung| rung.name == "cpu").count(), opened.get()), (1, 1), "{report}");
}

#[test]
fn a_backend_of_the_callers_is_used_as_it_is() {
    let (options, host) = (EngineOptions::default(), Rc::new(NativeHost::default()));
    // These are the plain definitions, which no candidate uses.
    let backend = Cpu::new(reference_cpu::Options { fast: false, ..Default::default() });
    let adapter = backend.info().adapter.clone();
    let mut seen = Vec::new();
    let mut progress = |p| seen.push(p);
    let load =
        async { Engine::with_backend(Box::new(backend), &BytesSource(GAB), &options, host, &mut progress).await };
    let engine = block_on(load).unwrap();
    assert!(!seen.contains(&Progress::Selecting), "{seen:?}");
    assert_eq!(engine.backend().info().adapter, adapter);
    let rungs = &engine.report().rungs;
    assert_eq!((rungs.len(), rungs[0].adapter.as_deref()), (1, Some(adapter.as_str())));
    assert_eq!(engine.report().chosen().unwrap().name, "cpu");

    let mut session = engine.session().unwrap();
    let mut options = engine.generate_options();
    options.max_tokens = Some(8);
    let prompt = engine.encode("Once upon a time").unwrap();
    let generation = block_on(engine.generate(&mut session, &prompt, &options, &mut |_| {})).unwrap();
    assert_eq!(generation.text, ", there was a little dragon named Iris");
}

#[test]
fn memory_for_the_whole_context_is_taken_at_once_if_that_is_asked_for() {
    let options = |capacity| EngineOptions { capacity, ..on_cpu() };
    let memory = |capacity| {
        let engine = load(GAB, &options(capacity)).unwrap();
        let loaded = engine.backend().stats().memory;
        let session = engine.session().unwrap();
        (loaded, engine.backend().stats().memory, session.footprint().unwrap().states)
    };
    let ((plain, grown, few), (taken, whole, all)) = (memory(None), memory(Some(usize::MAX)));
    assert!(grown > plain && few < all, "{few} of {all} bytes");
    assert_eq!((taken, whole), (plain + all, plain + all));
}
