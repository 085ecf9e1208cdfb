//! A text that fills its context, on every candidate backend: the same tokens everywhere, without growing memory.

use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use anygpu::native::block_on;
use backend_api::run::NativeHost;
use backend_api::{Backend, Error, compare};
use model::{BytesSource, GenerateOptions, Gguf, Model, Recipe, Sampling, Session};

/// Most growth of the process while a text grows: drivers keep a little memory.
///
/// *Units*: bytes.
const GROWTH: u64 = 16 << 20;
/// Gap between two logits that rounding may close.
const TIE: f32 = 1e-3;
/// Most ties of a text with that of another backend.
const TIES: usize = 3;

/// A text on a backend.
struct Text {
    name: &'static str,
    session: Session,
    tokens: Vec<u32>,
}

impl Text {
    fn new(name: &'static str, backend: Rc<dyn Backend>) -> Text {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/gab-q4_0.gguf");
        let bytes = std::fs::read(path).unwrap();
        let recipe = Recipe::new(&Gguf::from_bytes(&bytes).unwrap(), None).unwrap();
        let host = NativeHost::default();
        let model = block_on(Model::load(&BytesSource(bytes), recipe, backend, &host, &mut |_, _| {})).unwrap();
        let n_ctx = model.recipe().sizes().n_ctx;
        let session = Session::with_capacity(Rc::new(model), n_ctx).unwrap();
        Text { name, session, tokens: vec![956, 1352, 259, 490] }
    }

    /// Generates up to so many tokens in total.
    fn grow(&mut self, sampling: Sampling, to: usize) {
        let begin = self.session.resume(&self.tokens).to_vec();
        let options = GenerateOptions {
            max_tokens: Some(to - self.tokens.len()),
            sampling,
            stop_tokens: Some(Vec::new()),
            // Programs that verify drafts would be made in the middle of a text, and take memory.
            draft_max: Some(0),
            ..GenerateOptions::default()
        };
        let host = NativeHost::default();
        let made = block_on(self.session.generate(&begin, &options, None, &host, &mut |_| {})).unwrap();
        self.tokens.extend(made.tokens);
        assert_eq!(self.tokens.len(), to, "{}", self.name);
    }

    /// Returns the logits after the first `count` tokens.
    fn logits(&mut self, count: usize) -> Vec<f32> {
        let tokens = self.tokens[..count].to_vec();
        let rest = self.session.resume(&tokens);
        block_on(self.session.logits(rest, false, &NativeHost::default())).unwrap()
    }

    /// Writes all rows of the caches: the system counts a page of theirs from then on.
    fn touch(&mut self) {
        let tokens: Vec<u32> = self.tokens.iter().copied().cycle().take(self.session.n_ctx()).collect();
        let rest = self.session.resume(&tokens);
        block_on(self.session.logits(rest, false, &NativeHost::default())).unwrap();
    }

    fn memory(&self) -> u64 {
        self.session.model().backend().stats().memory
    }
}

/// Returns the memory of this process in bytes; 0 if the system does not report it.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    line.and_then(|kibibytes| kibibytes.parse::<u64>().ok()).map_or(0, |kibibytes| kibibytes << 10)
}

/// Fills the context in two parts. Asserts that the second part adds no memory.
fn fill(text: &mut Text, sampling: Sampling) {
    let n_ctx = text.session.n_ctx();
    text.touch();
    text.grow(sampling, n_ctx / 8);
    let (memory, held) = (text.memory(), resident());
    text.grow(sampling, n_ctx);
    let grown = resident().saturating_sub(held);
    assert_eq!(text.memory(), memory, "{}: bytes on the device", text.name);
    println!("{}: {n_ctx} tokens, {:.1} MB more in the process", text.name, grown as f64 / 1e6);
    assert!(grown <= GROWTH, "{}: {grown} bytes more", text.name);
}

fn everywhere(sampling: Sampling) {
    // The memory of the process is that of one test.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let open = |backend: Result<Rc<dyn Backend>, Error>| backend.unwrap_or_else(|error| panic!("{error}"));
    let webgl = |layout| {
        let options = backend_webgl::Options { layout, ..Default::default() };
        open(backend_webgl::WebGl::open(options).map(|webgl| Rc::new(webgl) as Rc<dyn Backend>))
    };
    let mut first = Text::new("cpu", Rc::new(reference_cpu::Cpu::new(reference_cpu::Options::default())));
    fill(&mut first, sampling);
    let webgpu = block_on(backend_webgpu::WebGpu::open(Default::default()));
    let others: [(_, Rc<dyn Backend>); 4] = [
        ("webgpu", open(webgpu.map(|webgpu| Rc::new(webgpu) as Rc<dyn Backend>))),
        ("webgl packed", webgl(backend_webgl::Layout::Packed)),
        ("webgl r32f", webgl(backend_webgl::Layout::R32f)),
        ("webgl bits", webgl(backend_webgl::Layout::Bits)),
    ];
    for (name, backend) in others {
        let mut text = Text::new(name, backend);
        fill(&mut text, sampling);
        let mut ties = 0;
        while let Some(at) = text.tokens.iter().zip(&first.tokens).position(|(a, b)| a != b) {
            let (ours, theirs) = (text.logits(at), first.logits(at));
            let apart = compare::nmse(&ours[..].into(), &theirs[..].into()).unwrap();
            let gap = (theirs[first.tokens[at] as usize] - theirs[text.tokens[at] as usize]).abs();
            println!("{name}: a near tie at position {at}, {gap:.1e} between the logits, NMSE {apart:.1e}");
            assert!(apart <= 1e-6, "{name}: NMSE {apart:.1e} at {at}");
            assert!(gap <= TIE || sampling != Sampling::Greedy, "{name}: no tie at {at}, but {gap}");
            ties += 1;
            assert!(ties <= TIES, "{name}: too many ties");
            // The text continues with the other backend's choice.
            text.tokens = first.tokens[..=at].to_vec();
            text.grow(sampling, first.tokens.len());
        }
    }
}

#[test]
#[ignore = "takes minutes; cargo xtask test --nightly runs it"]
fn the_best_tokens_to_the_end_of_the_context() {
    everywhere(Sampling::Greedy);
}

#[test]
#[ignore = "takes minutes; cargo xtask test --nightly runs it"]
fn drawn_tokens_to_the_end_of_the_context() {
    everywhere(Sampling::Random { temperature: 0.9, top_k: 40, top_p: 0.95, seed: 12 });
}
