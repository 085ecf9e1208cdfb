//! Steps that are split into parts for slow devices: the same bits, parts within the budget, and no change on fast
//! devices. Rates are forced, so that no test depends on time.

use std::collections::BTreeSet;
use std::rc::Rc;

use anygpu::native::block_on;
use anygpu::{Choice, Engine, EngineOptions, SelectOptions};
use backend_api::case::Case;
use backend_api::pace::PART_MS;
use backend_api::run::{NativeHost, Rig};
use backend_api::{Backend, Error, Pace, Stats, StepParams, cases};
use backend_webgl::Layout;
use backend_webgl::Layout::{Bits, Packed, R32f};
use model::{BytesSource, GenerateOptions, Gguf, Head, Model, Recipe, Session};
use reference_cpu::Cpu;

/// Opens a backend; nothing if it is to be skipped.
fn open<B: Backend + 'static>(name: &str, backend: impl FnOnce() -> Result<B, Error>) -> Option<Rc<dyn Backend>> {
    let skip = std::env::var("ANYGPU_SKIP").unwrap_or_default();
    if skip.split(',').any(|s| s.trim() == name) {
        println!("SKIPPED: ANYGPU_SKIP names {name}");
        return None;
    }
    Some(Rc::new(backend().unwrap_or_else(|e| panic!("{e}; or skip it with ANYGPU_SKIP={name}"))))
}

fn cpu(threads: usize) -> Option<Rc<dyn Backend>> {
    let options = reference_cpu::Options { threads: std::num::NonZeroUsize::new(threads), ..Default::default() };
    Some(Rc::new(Cpu::new(options)))
}

fn webgpu(tuning: Option<backend_webgpu::Tuning>) -> Option<Rc<dyn Backend>> {
    let options = backend_webgpu::Options { tuning, ..Default::default() };
    open("webgpu", || block_on(backend_webgpu::WebGpu::open(options)))
}

fn webgl(layout: Layout, tuning: Option<backend_webgl::Tuning>) -> Option<Rc<dyn Backend>> {
    open("webgl", || backend_webgl::WebGl::open(backend_webgl::Options { layout, tuning, ..Default::default() }))
}

/// Runs cases in the smallest parts, and whole: the first case of each fusion pattern and operator and, if `rows` is
/// set, the first one with many rows as well. At least `least` of them must have kernels that can be split.
fn kernels(name: &str, backend: Option<Rc<dyn Backend>>, rows: bool, least: usize) {
    let Some(backend) = backend else { return };
    let host = NativeHost::default();
    let run = |case: &Case, most: Option<u64>| {
        let mut rig = Rig::of_case(&*backend, case)?;
        let parts = match most {
            None => rig.step(&case.step).map(|()| 1)?,
            Some(most) => rig.step_in_parts(&case.step, most)?,
        };
        Ok::<_, Error>((block_on(rig.results(&host))?, parts, rig.kernels().len()))
    };
    let (mut seen, mut cut) = (BTreeSet::new(), 0);
    let is_wanted = |case: &Case| rows || case.step.rows < MANY;
    for case in
        cases::all().into_iter().filter(|case| is_wanted(case) && seen.insert((case.op, case.step.rows >= MANY)))
    {
        let (whole, ..) = match run(&case, None) {
            Err(Error::Unsupported(_)) => continue,
            other => other.unwrap_or_else(|e| panic!("{name}: {} {}: {e}", case.op, case.name)),
        };
        let (found, parts, kernels) = run(&case, Some(1)).unwrap();
        assert!(found == whole, "{name}: {} ({}) is another in {parts} parts", case.op, case.name);
        assert!(parts >= kernels, "{name}: {}: {parts} parts of {kernels} kernels", case.op);
        cut += usize::from(parts > kernels);
    }
    println!("{name}: {cut} of {} cases had kernels that were cut", seen.len());
    assert!(cut >= least, "{name}: kernels of {cut} cases were cut");
}

/// Number of rows that counts as many.
const MANY: u32 = 12;

fn recipe(bytes: &[u8]) -> Recipe {
    Recipe::new(&Gguf::from_bytes(bytes).unwrap(), Some(256)).unwrap()
}

/// Costs and results of a prompt and an answer, on a device of a forced rate or without one.
struct Run {
    logits: Vec<f32>,
    /// Counters of the step that gave the logits.
    prompt: Stats,
    tokens: Vec<u32>,
}

/// Tokens of the prompt, which fill a program.
const ROWS: usize = 32;

/// Runs a text on devices that seem fast and slow.
fn text(name: &str, backend: Option<Rc<dyn Backend>>) {
    let Some(backend) = backend else { return };
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/fixtures/llama-q8_0.gguf");
    let bytes = std::fs::read(path).unwrap();
    let host = NativeHost::default();
    let synchronous = backend.info().synchronous;
    let graph = recipe(&bytes).graph(ROWS, Head::LOGITS).unwrap();
    let step = StepParams::at(0, ROWS as u32);
    let source = BytesSource(bytes.clone());
    let model = block_on(Model::load(&source, recipe(&bytes), backend.clone(), &host, &mut |_, _| {})).unwrap();
    let model = Rc::new(model);
    let prompt: Vec<u32> = (0..ROWS as u32).map(|i| 1 + i * 7 % 60).collect();
    let run = |rate: Option<f64>| {
        let mut session = Session::new(model.clone()).unwrap();
        if let Some(rate) = rate {
            session.set_pace(Pace::fixed(rate, synchronous));
        }
        session.prepare(ROWS, Head::LOGITS).unwrap();
        block_on(session.settle(&host)).unwrap();
        let before = backend.stats();
        let logits = block_on(session.logits(&prompt, false, &host)).unwrap();
        let spent = backend.stats().since(&before);
        session.rewind(0);
        let options = GenerateOptions { max_tokens: Some(12), stop_tokens: Some(vec![]), ..Default::default() };
        let made = block_on(session.generate(&prompt, &options, None, &host, &mut |_| {})).unwrap();
        Run { logits, prompt: spent, tokens: made.tokens }
    };
    // The first run allocates the read buffers.
    run(None);
    let [whole, fast] = [None, Some(1e12)].map(run);
    assert_eq!((whole.prompt, &whole.tokens), (fast.prompt, &fast.tokens), "{name}: on a fast device");
    assert!(whole.logits == fast.logits, "{name}");
    let mut rig = Rig::new(&*backend, &graph).unwrap();
    for rate in [4e3, 100.0, 1.0] {
        let slow = run(Some(rate));
        let parts = rig.step_in_parts(&step, Pace::fixed(rate, synchronous).most(ROWS, PART_MS)).unwrap() as u64;
        println!("{name}: {parts} parts at a rate of {rate}");
        assert!(parts > 2, "{name}: {parts} parts");
        assert!(slow.logits == whole.logits, "{name}: logits at a rate of {rate}");
        assert_eq!(slow.tokens, whole.tokens, "{name}: tokens at a rate of {rate}");
        assert_eq!(slow.prompt.objects, 0, "{name}");
        let more = slow.prompt.submits - whole.prompt.submits;
        // WebGL passes fences on by additional flushes.
        assert!(
            more == parts - 1 || (more >= parts - 1 && backend.info().name == "webgl"),
            "{name}: {more} for {parts}"
        );
    }
}

/// Makes a test for each of several ways to open a backend.
macro_rules! tests {
    ($module:ident: $($name:ident = $run:expr;)+) => {
        mod $module {
            use super::*;

            $(#[test]
            fn $name() {
                $run;
            })+
        }
    };
}

tests! { kernels_in_parts_give_the_same_bits:
    cpu_alone = kernels("cpu", cpu(1), true, 5);
    webgpu_gpu = kernels("webgpu", webgpu(Some(backend_webgpu::Tuning::default())), false, 25);
    webgpu_software = kernels("webgpu, software", webgpu(Some(backend_webgpu::Tuning::software())), false, 10);
    webgl_packed = kernels("webgl", webgl(Packed, None), false, 35);
    webgl_gpu = kernels("webgl, GPU", webgl(Packed, Some(backend_webgl::Tuning::default())), false, 35);
}

tests! { a_text_is_the_same_on_a_slow_device:
    cpu_alone = text("cpu", cpu(1));
    cpu_threads = text("cpu, threads", cpu(2));
    webgpu_gpu = text("webgpu", webgpu(Some(backend_webgpu::Tuning::default())));
    webgpu_software = text("webgpu, software", webgpu(Some(backend_webgpu::Tuning::software())));
    webgl_packed = text("webgl", webgl(Packed, None));
    webgl_r32f = text("webgl r32f", webgl(R32f, None));
    webgl_bits = text("webgl bits", webgl(Bits, None));
}

/// An engine takes the rate from selection or from its options, and embeddings use it, too.
#[test]
fn an_engine_goes_at_the_rate_that_it_is_told() {
    let submits = |file: &str, rate: Option<f64>, work: &dyn Fn(&Engine)| {
        let select = SelectOptions { backend: Choice::Cpu, ..Default::default() };
        let options = EngineOptions { select, rate, n_ctx: Some(64), ..Default::default() };
        let path = format!("{}/../models/fixtures/{file}.gguf", env!("CARGO_MANIFEST_DIR"));
        let engine = block_on(Engine::open(path, &options)).unwrap();
        let before = engine.backend().stats();
        work(&engine);
        engine.backend().stats().since(&before).submits
    };
    let tokens: Vec<u32> = (1..40).collect();
    let text = |engine: &Engine| {
        let mut session = engine.session().unwrap();
        let options = GenerateOptions { max_tokens: Some(1), ..engine.generate_options() };
        block_on(engine.generate(&mut session, &tokens, &options, &mut |_| {})).unwrap();
    };
    let vector = |engine: &Engine| {
        block_on(engine.embed(&mut engine.embedder().unwrap(), &tokens)).unwrap();
    };
    let check = |file: &str, work: &dyn Fn(&Engine)| {
        let [slow, fast, measured] = [Some(100.0), Some(1e12), None].map(|rate| submits(file, rate, work));
        assert!(slow > 20 * fast, "{file}: {slow} submits on a slow device, {fast} on a fast one");
        assert!(measured < slow, "{file}: {measured} submits on this device");
    };
    check("llama-q8_0", &text);
    check("bert-mean", &vector);
}
