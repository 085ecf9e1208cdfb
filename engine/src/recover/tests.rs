//! Tests in which every call to a backend fails once. The caller gets a typed error, or the text of an undisturbed run.

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;

use backend_api::Backend;
use backend_api::run::NativeHost;
use model::{ByteSource, BytesSource, GenerateOptions, Overflow, Recipe, Sampling, Saving, Snapshot, SnapshotSink};

use super::Event;
#[cfg(any(feature = "webgpu", feature = "webgl"))]
use super::failing::rung;
use super::failing::{Failing, Fault, How};
use crate::engine::{Engine, EngineOptions};
use crate::error::EngineError;
use crate::native::block_on;
use crate::report::Report;
use crate::rung::Rung;

/// Memory that a backend may keep: a few buffers for reads and parameters, whose sizes depend on earlier reads. A leak
/// in each of hundreds of runs would soon exceed it.
///
/// *Units*: bytes.
const KEPT: u64 = 32 << 10;

/// Sink of snapshots that makes the device be read, at the beginning and the end of a text.
struct Nowhere;

impl SnapshotSink for Nowhere {
    fn position(&self) -> usize {
        0
    }
    fn is_ready(&self) -> bool {
        false
    }
    fn take(&self, _: Snapshot) {}
}

/// Outcome of a run.
struct Run {
    text: Result<Vec<u32>, EngineError>,
    /// Whether another backend took over.
    recovered: usize,
    calls: usize,
}

/// Texts: number of tokens, size of the context, and overflow handling. In the second one, old tokens are dropped
/// twice.
const TEXTS: [(usize, usize, Overflow); 2] = [(6, 32, Overflow::Error), (9, 10, Overflow::Shift { keep: 2 })];

/// Loads a tiny model on a backend on which one call fails, and generates; `next` takes over.
fn run(name: &str, text: (usize, usize, Overflow), [inner, next]: [&Rc<dyn Backend>; 2], at: usize, how: How) -> Run {
    run_on(name, text, inner, || next.clone(), at, how)
}

/// Runs a text; `next` opens the backends that take over.
fn run_on(
    name: &str,
    (tokens, n_ctx, overflow): (usize, usize, Overflow),
    inner: &Rc<dyn Backend>,
    mut next: impl FnMut() -> Rc<dyn Backend>,
    at: usize,
    how: How,
) -> Run {
    let path = format!("{}/../models/fixtures/{name}.gguf", env!("CARGO_MANIFEST_DIR"));
    let source = BytesSource(std::fs::read(path).unwrap());
    let options = EngineOptions { n_ctx: Some(n_ctx), ..EngineOptions::default() };
    let fault = Rc::new(Fault { at, how, calls: Cell::new(0) });
    let failing = Failing { inner: inner.clone(), fault: fault.clone() };
    let mut recovered = 0;
    let all = || {
        let host = Rc::new(NativeHost::default());
        let mut engine = block_on(Engine::with_backend(Box::new(failing), &source, &options, host, &mut |_| {}))?;
        let mut session = engine.session()?;
        let generate = GenerateOptions {
            max_tokens: Some(tokens),
            overflow,
            sampling: Sampling::Random { temperature: 1.0, top_k: 0, top_p: 1.0, seed: 5 },
            stop_tokens: Some(Vec::new()),
            fetch_interval: Some(2),
            saving: Some(Saving { every_ms: 0.0, sink: Rc::new(Nowhere) }),
            ..GenerateOptions::default()
        };
        let mut told = Vec::new();
        let mut on_event = |event: Event<'_>| match event {
            Event::Piece(piece) => told.extend(piece.token),
            Event::Recovered(_) => recovered += 1,
        };
        let open = async |_: &super::Lost| {
            let next = next();
            let report = Report::given(next.info());
            Ok((next, report))
        };
        let prompt = [3, 1, 4, 1, 5, 9, 2];
        let mut text = engine.sequence(&prompt, &generate)?;
        let loaded = (&source as &dyn ByteSource, &options);
        block_on(engine.survive(loaded, &mut session, &mut text, &mut |_| false, &mut on_event, open))?;
        let generation = text.into_generation(&mut |piece| on_event(Event::Piece(piece)));
        assert_eq!(generation.tokens, told, "each token is told once");
        Ok(generation.tokens)
    };
    let text = all();
    Run { text, recovered, calls: fault.calls.get() }
}

/// Fails each `stride`-th call, in each way.
fn every_call_fails_once(open: &dyn Fn() -> Rc<dyn Backend>, stride: usize) {
    for name in ["llama-gqa-tied", "lfm2-tiny"] {
        TEXTS.iter().for_each(|text| every_call_of(name, *text, open, stride));
    }
}

fn every_call_of(name: &str, text: (usize, usize, Overflow), open: &dyn Fn() -> Rc<dyn Backend>, stride: usize) {
    let (inner, next) = (open(), open());
    let run = |at, how| run(name, text, [&inner, &next], at, how);
    let undisturbed = run(usize::MAX, How::Driver);
    let tokens = undisturbed.text.unwrap();
    assert_eq!(tokens.len(), text.0);
    let kept = inner.stats().memory;
    assert!(kept <= KEPT, "{name}: {kept} bytes are not freed");
    let mut outcomes = HashSet::new();
    for at in (0..undisturbed.calls).step_by(stride) {
        for how in [How::Lost, How::OutOfMemory, How::Driver] {
            let run = run(at, how);
            let calls = undisturbed.calls;
            let here = format!("{name} on {}, {text:?}, call {at} of {calls}, {how:?}", inner.info().name);
            match run.text {
                Ok(found) => {
                    assert_eq!(found, tokens, "{here}");
                    assert_eq!(run.recovered, usize::from(how == How::Lost), "{here}");
                    outcomes.insert("recovered");
                }
                Err(error) => {
                    assert_eq!(run.recovered, 0, "{here}");
                    assert!(!error.to_string().contains('\n'), "{here}: {error}");
                    outcomes.insert(if error.lost().is_some() { "lost" } else { "error" });
                }
            }
            let left = [inner.stats().memory, next.stats().memory];
            assert!(left.iter().all(|bytes| *bytes <= KEPT), "{here}: {left:?} bytes are left, not {kept}");
        }
    }
    // A failure during loading is returned to the caller; no other backend takes over.
    assert_eq!(outcomes.len(), 3, "{name}: {outcomes:?}");
}

/// Opens a device whose memory runs out at a call.
fn small(at: usize) -> Rc<dyn Backend> {
    let inner: Rc<dyn Backend> = Rc::new(reference_cpu::Cpu::new(reference_cpu::Options::default()));
    let fault = Rc::new(Fault { at, how: How::OutOfMemory, calls: Cell::new(0) });
    Rc::new(Failing { inner, fault })
}

/// Loads a model where each candidate of `rungs` has memory for so many calls; returns the candidates that were left
/// out in the end.
fn load_where_memory_ends(rungs: &[(&'static str, usize)]) -> Result<Vec<&'static str>, EngineError> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/fixtures/llama-gqa-tied.gguf");
    let source = BytesSource(std::fs::read(path).unwrap());
    let mut left_out = Vec::new();
    let choose = async |_: &Recipe, without: &[&'static str], _: &mut dyn FnMut(&Rung)| {
        left_out = without.to_vec();
        let none = || EngineError::NoBackend(Report::default());
        let (name, calls) = rungs.iter().find(|(name, _)| !without.contains(name)).ok_or_else(none)?;
        let backend = small(*calls);
        Ok((backend.clone(), Report { chosen: Some(*name), ..Report::given(backend.info()) }))
    };
    let host = Rc::new(NativeHost::default());
    block_on(Engine::load_on(&source, &EngineOptions::default(), host, &mut |_| {}, choose))?;
    Ok(left_out)
}

#[test]
fn a_rung_without_memory_makes_way_for_the_next_one() {
    assert_eq!(load_where_memory_ends(&[("a", usize::MAX)]).unwrap(), Vec::<&str>::new());
    assert_eq!(load_where_memory_ends(&[("a", 0), ("b", 5), ("c", usize::MAX)]).unwrap(), ["a", "b"]);
    // The error is the cause, not that no candidate was left.
    let error = load_where_memory_ends(&[("a", 0), ("b", 5)]).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
}

#[test]
fn a_text_goes_on_where_there_is_memory() {
    let inner: Rc<dyn Backend> = Rc::new(reference_cpu::Cpu::new(reference_cpu::Options::default()));
    let whole = run("llama-gqa-tied", TEXTS[0], [&inner, &inner], usize::MAX, How::Lost);
    let lost = whole.calls - 3;
    for (memory, recovered) in [(0, false), (usize::MAX, true)] {
        let mut opened = 0;
        let next = || {
            opened += 1;
            if opened <= 2 { small(opened) } else { small(memory) }
        };
        let run = run_on("llama-gqa-tied", TEXTS[0], &inner, next, lost, How::Lost);
        assert_eq!(run.recovered, usize::from(recovered));
        match run.text {
            Ok(text) => assert_eq!(text, *whole.text.as_ref().unwrap()),
            Err(error) => assert!(error.is_out_of_memory() && !recovered, "{error}"),
        }
        // It is tried three times, and no more.
        assert_eq!(opened, 3);
    }
}

#[test]
fn every_call_to_the_cpu_fails_once() {
    every_call_fails_once(&|| Rc::new(reference_cpu::Cpu::new(reference_cpu::Options::default())), 1);
}

#[cfg(feature = "webgpu")]
#[test]
fn calls_to_webgpu_fail_once() {
    if rung("webgpu").is_some() {
        every_call_fails_once(&|| rung("webgpu").unwrap(), 11);
    }
}

#[cfg(feature = "webgpu")]
#[test]
#[ignore = "minutes; nightly"]
fn every_other_call_to_webgpu_fails_once() {
    every_call_fails_once(&|| rung("webgpu").unwrap(), 2);
}

#[cfg(feature = "webgl")]
#[test]
fn calls_to_webgl_fail_once() {
    if rung("webgl packed").is_some() {
        every_call_fails_once(&|| rung("webgl packed").unwrap(), 11);
    }
}

#[cfg(feature = "webgl")]
#[test]
#[ignore = "minutes; nightly"]
fn every_other_call_to_webgl_fails_once() {
    every_call_fails_once(&|| rung("webgl packed").unwrap(), 2);
}
