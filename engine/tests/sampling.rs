//! Sampling with a temperature, on every backend: the text of a seed is the same everywhere.

use std::rc::Rc;

use anygpu::native::{NativeHost, block_on};
use anygpu::{Engine, EngineOptions};
use backend_api::{Backend, Error};
use model::{BytesSource, Sampling};
use reference_cpu::Cpu;

const GAB: &[u8] = include_bytes!("../../models/gab-q4_0.gguf");
const PROMPT: &str = "Once upon a time";

/// The texts of these seeds. Tokens are few, since software needs up to a quarter of a second for one.
fn texts(backend: Box<dyn Backend>, seeds: &[u64]) -> Vec<String> {
    let (options, host) = (EngineOptions::default(), Rc::new(NativeHost::default()));
    let load = async { Engine::with_backend(backend, &BytesSource(GAB), &options, host, &mut |_| {}).await };
    let engine = block_on(load).unwrap();
    let mut session = engine.session().unwrap();
    let prompt = engine.encode(PROMPT).unwrap();
    let text = |seed: &u64| {
        let mut options = engine.generate_options();
        options.max_tokens = Some(16);
        options.stop_tokens = Some(Vec::new());
        options.sampling = Sampling::Random { temperature: 1.0, top_k: 40, top_p: 0.95, seed: *seed };
        session.rewind(0);
        block_on(engine.generate(&mut session, &prompt, &options, &mut |_| {})).unwrap().text
    };
    seeds.iter().map(text).collect()
}

fn cpu() -> Box<dyn Backend> {
    Box::new(Cpu::new(Default::default()))
}

/// The CPU is the measure: its texts of two seeds differ, and the backend's are the same.
fn like_the_cpu<B: Backend + 'static>(name: &str, open: impl FnOnce() -> Result<B, Error>) {
    if std::env::var("ANYGPU_SKIP").is_ok_and(|skip| skip.split(',').any(|s| s.trim() == name)) {
        println!("SKIPPED {name}: ANYGPU_SKIP names it");
        return;
    }
    let backend = open().unwrap_or_else(|e| panic!("{e}; or skip it with ANYGPU_SKIP={name}"));
    assert_eq!(texts(Box::new(backend), &[3, 4]), texts(cpu(), &[3, 4]));
}

#[test]
fn a_seed_is_a_text_and_another_seed_is_another_text() {
    let found = texts(cpu(), &[3, 4, 3]);
    assert_eq!(found[0], found[2]);
    assert_ne!(found[0], found[1]);
    assert!(found.iter().all(|text| !text.is_empty()));
}

/// However much of the prompt is left from a text before.
#[test]
fn a_seed_is_a_text_wherever_its_prompt_begins_to_be_new() {
    let (options, host) = (EngineOptions::default(), Rc::new(NativeHost::default()));
    let load = async { Engine::with_backend(cpu(), &BytesSource(GAB), &options, host, &mut |_| {}).await };
    let engine = block_on(load).unwrap();
    let mut session = engine.session().unwrap();
    let prompt = engine.encode(&"Once upon a time there was a little dragon. ".repeat(12)).unwrap();
    let mut options = engine.generate_options();
    options.max_tokens = Some(8);
    options.stop_tokens = Some(Vec::new());
    options.sampling = Sampling::Random { temperature: 2.0, top_k: 0, top_p: 1.0, seed: 7 };
    let text = |left: usize| {
        session.rewind(left);
        block_on(engine.generate(&mut session, &prompt, &options, &mut |_| {})).unwrap().tokens
    };
    let texts: Vec<_> = (0..prompt.len()).step_by(9).map(text).collect();
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
}

#[test]
fn the_plain_definitions_sample_the_same() {
    like_the_cpu("cpu", || Ok(Cpu::new(reference_cpu::Options { fast: false, ..Default::default() })));
}

#[test]
fn webgpu_samples_the_same() {
    like_the_cpu("webgpu", || block_on(backend_webgpu::WebGpu::open(Default::default())));
}

#[test]
fn webgl_samples_the_same() {
    like_the_cpu("webgl", || backend_webgl::WebGl::open(Default::default()));
}

#[test]
fn webgl_with_one_value_a_texel_samples_the_same() {
    let options = backend_webgl::Options { layout: backend_webgl::Layout::R32f, ..Default::default() };
    like_the_cpu("webgl", || backend_webgl::WebGl::open(options));
}

#[test]
fn webgl_with_bits_samples_the_same() {
    let options = backend_webgl::Options { layout: backend_webgl::Layout::Bits, ..Default::default() };
    like_the_cpu("webgl", || backend_webgl::WebGl::open(options));
}
