//! Every call to a backend fails once: what a caller sees is a typed error, or the text of an undisturbed run.

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;

use backend_api::run::NativeHost;
use backend_api::{
    Backend, BackendInfo, Cover, Error, Graph, KernelInfo, Matcher, Plan, Program, ReadId, Stats, StepParams,
    StorageDesc, StorageId, Tensor, Unsupported,
};
use model::{BytesSource, GenerateOptions, Sampling, Saving, Snapshot, SnapshotSink};

use super::Event;
use crate::engine::{Engine, EngineOptions};
use crate::error::EngineError;
use crate::native::block_on;
use crate::report::Report;
use crate::select::SelectOptions;

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    /// And all calls after it.
    Lost,
    OutOfMemory,
    Driver,
}

/// Counts calls, and makes one of them fail.
struct Fault {
    at: usize,
    how: How,
    calls: Cell<usize>,
}

impl Fault {
    fn call(&self) -> Result<(), Error> {
        let call = self.calls.replace(self.calls.get() + 1);
        match self.how {
            How::Lost if call >= self.at => Err(Error::Lost("a test".into())),
            How::OutOfMemory if call == self.at => Err(Error::OutOfMemory { what: "a test".into(), bytes: 1 }),
            How::Driver if call == self.at => Err(Error::Driver("a test".into())),
            _ => Ok(()),
        }
    }
}

struct Failing {
    inner: Rc<dyn Backend>,
    fault: Rc<Fault>,
}

impl Backend for Failing {
    fn info(&self) -> &BackendInfo {
        self.inner.info()
    }
    fn matchers(&self) -> &[Matcher] {
        self.inner.matchers()
    }
    fn supports(&self, graph: &Graph, cover: &Cover) -> Result<(), Unsupported> {
        self.inner.supports(graph, cover)
    }
    fn slot_size(&self, tensor: &Tensor) -> u64 {
        self.inner.slot_size(tensor)
    }
    fn equal_results(&self) -> bool {
        self.inner.equal_results()
    }
    fn storage_bytes(&self, desc: &StorageDesc) -> Result<u64, Error> {
        self.inner.storage_bytes(desc)
    }
    fn create(&self, desc: &StorageDesc) -> Result<StorageId, Error> {
        self.fault.call()?;
        self.inner.create(desc)
    }
    fn write(&self, id: StorageId, first_row: usize, bytes: &[u8]) -> Result<(), Error> {
        self.fault.call()?;
        self.inner.write(id, first_row, bytes)
    }
    fn read(&self, id: StorageId, first_row: usize, rows: usize) -> Result<ReadId, Error> {
        self.fault.call()?;
        self.inner.read(id, first_row, rows)
    }
    fn try_read(&self, read: ReadId, out: &mut [u8]) -> Result<bool, Error> {
        // How often it is asked depends on the device's pace: the answer counts.
        let done = self.inner.try_read(read, out)?;
        if done {
            self.fault.call()?;
        }
        Ok(done)
    }
    fn destroy(&self, id: StorageId) {
        self.inner.destroy(id);
    }
    fn compile_sequences(&self, plan: &Plan, sequences: &[&[StorageId]]) -> Result<Box<dyn Program>, Error> {
        self.fault.call()?;
        let inner = self.inner.compile_sequences(plan, sequences)?;
        Ok(Box::new(FailingProgram { inner, fault: self.fault.clone() }))
    }
    fn idle(&self) -> Result<bool, Error> {
        self.inner.idle()
    }
    fn stats(&self) -> Stats {
        self.inner.stats()
    }
}

struct FailingProgram {
    inner: Box<dyn Program>,
    fault: Rc<Fault>,
}

impl Program for FailingProgram {
    fn step(&mut self, params: &StepParams) -> Result<(), Error> {
        self.fault.call()?;
        self.inner.step(params)
    }
    fn kernels(&self) -> Vec<KernelInfo> {
        self.inner.kernels()
    }
}

/// Backends keep a few buffers for reads and parameters, of sizes that depend on what was read. What leaks in each of
/// hundreds of runs is soon more.
///
/// *Units*: bytes.
const KEPT: u64 = 32 << 10;

/// Has the device be read, at the beginning and the end of a text.
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

/// What a run came to.
struct Run {
    text: Result<Vec<u32>, EngineError>,
    /// Whether another backend took over.
    recovered: usize,
    calls: usize,
}

/// Loads a tiny model on a backend of which one call fails, and generates; `next` takes over.
fn run(name: &str, inner: &Rc<dyn Backend>, next: &Rc<dyn Backend>, at: usize, how: How) -> Run {
    let path = format!("{}/../models/fixtures/{name}.gguf", env!("CARGO_MANIFEST_DIR"));
    let source = BytesSource(std::fs::read(path).unwrap());
    let options = EngineOptions { n_ctx: Some(32), ..EngineOptions::default() };
    let fault = Rc::new(Fault { at, how, calls: Cell::new(0) });
    let failing = Failing { inner: inner.clone(), fault: fault.clone() };
    let mut recovered = 0;
    let all = || {
        let host = Rc::new(NativeHost::default());
        let mut engine = block_on(Engine::with_backend(Box::new(failing), &source, &options, host, &mut |_| {}))?;
        let mut session = engine.session()?;
        let generate = GenerateOptions {
            max_tokens: 6,
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
        let open = async |_: &super::Lost| Ok((next.clone(), Report::given(next.info())));
        let prompt = [3, 1, 4, 1, 5, 9, 2];
        let ended = engine.surviving(&source, &options, &mut session, &prompt, &generate, &mut on_event, open);
        let generation = block_on(ended)?;
        assert_eq!(generation.tokens, told, "each token is told once");
        Ok(generation.tokens)
    };
    let text = all();
    Run { text, recovered, calls: fault.calls.get() }
}

/// Each `stride`-th call fails in each way.
fn every_call_fails_once(open: &dyn Fn() -> Rc<dyn Backend>, stride: usize) {
    for name in ["llama-gqa-tied", "lfm2-tiny"] {
        let (inner, next) = (open(), open());
        let undisturbed = run(name, &inner, &next, usize::MAX, How::Driver);
        let text = undisturbed.text.unwrap();
        assert_eq!(text.len(), 6);
        let kept = inner.stats().memory;
        assert!(kept <= KEPT, "{name}: {kept} bytes are not freed");
        let mut outcomes = HashSet::new();
        for at in (0..undisturbed.calls).step_by(stride) {
            for how in [How::Lost, How::OutOfMemory, How::Driver] {
                let run = run(name, &inner, &next, at, how);
                let here = format!("{name} on {}, call {at} of {}, {how:?}", inner.info().name, undisturbed.calls);
                match run.text {
                    Ok(tokens) => {
                        assert_eq!(tokens, text, "{here}");
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
        // While it is loaded nothing takes over: who loads it sees the error.
        assert_eq!(outcomes.len(), 3, "{name}: {outcomes:?}");
    }
}

#[test]
fn every_call_to_the_cpu_fails_once() {
    every_call_fails_once(&|| Rc::new(reference_cpu::Cpu::new(reference_cpu::Options::default())), 1);
}

/// Opens a rung by name, or tells that it is not there.
#[cfg(any(feature = "webgpu", feature = "webgl"))]
fn rung(name: &str) -> Option<Rc<dyn Backend>> {
    let candidate = crate::ladder::Candidate::named(name).unwrap();
    match block_on(candidate.open(&SelectOptions::default())) {
        Ok(backend) => Some(Rc::from(backend)),
        Err(error) => {
            println!("not run, because {name} is not there: {error}");
            None
        }
    }
}

#[cfg(feature = "webgpu")]
#[test]
fn every_call_to_webgpu_fails_once() {
    if rung("webgpu").is_some() {
        every_call_fails_once(&|| rung("webgpu").unwrap(), 3);
    }
}

#[cfg(feature = "webgl")]
#[test]
fn every_call_to_webgl_fails_once() {
    if rung("webgl packed").is_some() {
        every_call_fails_once(&|| rung("webgl packed").unwrap(), 3);
    }
}
