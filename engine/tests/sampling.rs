//! Sampling with a temperature, on every backend: a seed gives the same text everywhere.

use std::rc::Rc;

use anygpu::native::{NativeHost, block_on};
use anygpu::{Engine, EngineOptions, GenerateOptions, Session};
use backend_api::{Backend, Error};
use model::{Adjust, BytesSource, Generation, LogProb, Overflow, Sampling};
use reference_cpu::Cpu;

use crate::GAB;

const PROMPT: &str = "Once upon a time";

fn engine(backend: Box<dyn Backend>) -> Engine {
    let (options, host) = (EngineOptions::default(), Rc::new(NativeHost::default()));
    let load = async { Engine::with_backend(backend, &BytesSource(GAB), &options, host, &mut |_| {}).await };
    block_on(load).unwrap()
}

/// Generates after the prompt. Tokens are few, since software takes up to a quarter of a second for one.
fn generation(engine: &Engine, session: &mut Session, change: &dyn Fn(&mut GenerateOptions)) -> Generation {
    let mut options = engine.generate_options();
    options.max_tokens = Some(16);
    options.stop_tokens = Some(Vec::new());
    change(&mut options);
    session.rewind(0);
    let prompt = engine.encode(PROMPT).unwrap();
    block_on(engine.generate(session, &prompt, &options, &mut |_| {})).unwrap()
}

fn random(seed: u64) -> Sampling {
    Sampling::Random { temperature: 1.0, top_k: 40, top_p: 0.95, seed }
}

/// Returns the texts of these seeds.
fn texts(engine: &Engine, seeds: &[u64]) -> Vec<String> {
    let mut session = engine.session().unwrap();
    let text = |seed: &u64| generation(engine, &mut session, &|options| options.sampling = random(*seed)).text;
    seeds.iter().map(text).collect()
}

/// Returns all adjustments of probabilities, each one separately and all together.
fn adjustments() -> [Adjust; 6] {
    let none = Adjust::default();
    [
        Adjust { repetition_penalty: 1.8, ..none.clone() },
        Adjust { presence_penalty: 2.0, ..none.clone() },
        Adjust { frequency_penalty: 1.5, ..none.clone() },
        Adjust { min_p: 0.2, ..none.clone() },
        Adjust { logit_bias: vec![(12, -100.0), (300, 8.0)], ..none },
        Adjust {
            repetition_penalty: 1.2,
            presence_penalty: 0.5,
            frequency_penalty: 0.5,
            min_p: 0.05,
            logit_bias: vec![(300, 4.0)],
        },
    ]
}

/// Returns the sampled texts of all adjustments, and the greedy text of all of them together.
fn adjusted(engine: &Engine) -> Vec<Vec<u32>> {
    let mut session = engine.session().unwrap();
    let all = adjustments();
    let drawn = all.iter().map(|adjust| (random(3), adjust));
    let likeliest = all.last().map(|adjust| (Sampling::Greedy, adjust));
    let mut text = |(sampling, adjust): (Sampling, &Adjust)| {
        let change = |options: &mut GenerateOptions| {
            (options.sampling, options.adjust, options.max_tokens) = (sampling, adjust.clone(), Some(6));
        };
        generation(engine, &mut session, &change).tokens
    };
    drawn.chain(likeliest).map(&mut text).collect()
}

fn cpu() -> Box<dyn Backend> {
    Box::new(Cpu::new(Default::default()))
}

/// Compares a backend with the CPU: the texts of two seeds and of all adjustments are the same.
fn like_the_cpu<B: Backend + 'static>(name: &str, open: impl FnOnce() -> Result<B, Error>) {
    if std::env::var("ANYGPU_SKIP").is_ok_and(|skip| skip.split(',').any(|s| s.trim() == name)) {
        println!("SKIPPED {name}: ANYGPU_SKIP names it");
        return;
    }
    let backend = open().unwrap_or_else(|e| panic!("{e}; or skip it with ANYGPU_SKIP={name}"));
    let (own, cpu) = (engine(Box::new(backend)), engine(cpu()));
    assert_eq!(texts(&own, &[3, 4]), texts(&cpu, &[3, 4]));
    assert_eq!(adjusted(&own), adjusted(&cpu));
    for (here, there) in told(&own).iter().zip(&told(&cpu)) {
        assert_eq!(here.token, there.token);
        let ids = |told: &LogProb| told.top.iter().map(|(id, _)| *id).collect::<Vec<_>>();
        assert_eq!(ids(here), ids(there));
        let all =
            |told: &LogProb| [told.log_prob].into_iter().chain(told.top.iter().map(|(_, p)| *p)).collect::<Vec<_>>();
        // The CPU multiplies with integers and other backends with floats, so that logits of about 20 differ by
        // thousandths.
        let near = all(here).iter().zip(all(there)).all(|(a, b)| (a - b).abs() < 1e-2);
        assert!(near, "{here:?} and {there:?}");
    }
}

/// Returns the probabilities of sampled tokens.
fn told(engine: &Engine) -> Vec<LogProb> {
    let mut session = engine.session().unwrap();
    let change = |options: &mut GenerateOptions| {
        (options.sampling, options.log_probs, options.max_tokens) = (random(5), Some(4), Some(6));
    };
    let generation = generation(engine, &mut session, &change);
    assert_eq!(generation.log_probs.iter().map(|told| told.token).collect::<Vec<_>>(), generation.tokens);
    generation.log_probs
}

#[test]
fn each_adjustment_changes_the_text_and_none_does_not() {
    let engine = engine(cpu());
    let mut session = engine.session().unwrap();
    for sampling in [Sampling::Greedy, random(9)] {
        let mut text = |adjust: &Adjust| {
            let change = |options: &mut GenerateOptions| {
                (options.sampling, options.adjust, options.max_tokens) = (sampling, adjust.clone(), Some(64));
            };
            generation(&engine, &mut session, &change).tokens
        };
        let plain = text(&Adjust::default());
        for adjust in adjustments() {
            let drops_only = adjust.min_p > 0.0 && adjust.logit_bias.is_empty();
            assert_eq!(text(&adjust) != plain, !(drops_only && sampling == Sampling::Greedy), "{adjust:?}");
        }
        // A bias of 0 runs the kernels all the same.
        assert_eq!(text(&Adjust { logit_bias: vec![(5, 0.0)], ..Adjust::default() }), plain);
        let banned = Adjust { logit_bias: vec![(plain[0], -100.0)], ..Adjust::default() };
        assert!(!text(&banned).contains(&plain[0]));
    }
}

#[test]
fn what_is_told_of_a_text_does_not_change_it_and_adds_up() {
    let engine = engine(cpu());
    let mut session = engine.session().unwrap();
    for sampling in [Sampling::Greedy, random(5)] {
        let plain = generation(&engine, &mut session, &|options| options.sampling = sampling);
        assert!(plain.log_probs.is_empty());
        let told = generation(&engine, &mut session, &|options| {
            (options.sampling, options.log_probs) = (sampling, Some(20));
        });
        assert_eq!(told.tokens, plain.tokens);
        for one in &told.log_probs {
            let sum: f32 = one.top.iter().map(|(_, log_prob)| log_prob.exp()).sum();
            assert!(one.top.len() == 20 && sum <= 1.0001, "{sum}");
            assert!(one.top.is_sorted_by(|a, b| a.1 >= b.1));
            let listed = one.top.iter().find(|(id, _)| *id == one.token);
            assert!(listed.is_none_or(|(_, log_prob)| *log_prob == one.log_prob), "{one:?}");
            assert!(sampling != Sampling::Greedy || one.top[0].0 == one.token);
        }
        // The first token's probabilities are those of the logits.
        session.rewind(0);
        let prompt = engine.encode(PROMPT).unwrap();
        let logits = block_on(session.logits(&prompt, false, &NativeHost::default())).unwrap();
        let all = logits.iter().map(|logit| f64::from(*logit).exp()).sum::<f64>().ln();
        for (id, log_prob) in &told.log_probs[0].top {
            let expected = f64::from(logits[*id as usize]) - all;
            assert!((expected - f64::from(*log_prob)).abs() < 1e-4, "{id}: {log_prob}, not {expected}");
        }
        let few = generation(&engine, &mut session, &|options| {
            (options.sampling, options.log_probs) = (sampling, Some(0));
        });
        assert!(few.log_probs.len() == few.tokens.len() && few.log_probs.iter().all(|one| one.top.is_empty()));
    }
}

/// Interrupts a text after any number of tokens and resumes it in another session, also with context shifts.
#[test]
fn an_adjusted_text_goes_on_where_it_was_broken_off() {
    let (options, host) = (EngineOptions { n_ctx: Some(32), ..Default::default() }, Rc::new(NativeHost::default()));
    let load = async { Engine::with_backend(cpu(), &BytesSource(GAB), &options, host, &mut |_| {}).await };
    let engine = block_on(load).unwrap();
    let prompt = engine.encode(PROMPT).unwrap();
    for sampling in [Sampling::Greedy, random(9)] {
        for adjust in adjustments() {
            let text = |done: &[u32]| {
                let mut options = engine.generate_options();
                (options.sampling, options.adjust, options.max_tokens) = (sampling, adjust.clone(), Some(60));
                (options.overflow, options.stop_tokens) = (Overflow::Shift { keep: 2 }, Some(Vec::new()));
                (options.done, options.draft_max) = (done.to_vec(), Some(done.len() % 3 * 3));
                let mut session = engine.session().unwrap();
                let text = [&prompt[..], done].concat();
                block_on(engine.generate(&mut session, &text, &options, &mut |_| {})).unwrap().tokens
            };
            let whole = text(&[]);
            for done in [1, 21, 59] {
                assert_eq!(text(&whole[..done]), whole, "{adjust:?} after {done}");
            }
        }
    }
}

#[test]
fn adjustments_out_of_range_are_refused() {
    let engine = engine(cpu());
    let mut session = engine.session().unwrap();
    let prompt = engine.encode(PROMPT).unwrap();
    let none = Adjust::default();
    let wrong = [
        Adjust { repetition_penalty: 0.0, ..none.clone() },
        Adjust { repetition_penalty: f32::NAN, ..none.clone() },
        Adjust { presence_penalty: f32::INFINITY, ..none.clone() },
        Adjust { frequency_penalty: -101.0, ..none.clone() },
        Adjust { min_p: 1.5, ..none.clone() },
        Adjust { logit_bias: vec![(1, f32::NAN)], ..none.clone() },
        Adjust { logit_bias: vec![(u32::MAX, 1.0)], ..none.clone() },
        Adjust { logit_bias: vec![(1, 1.0); 1025], ..none },
    ];
    for adjust in wrong {
        let options = GenerateOptions { adjust, ..engine.generate_options() };
        block_on(engine.generate(&mut session, &prompt, &options, &mut |_| {})).unwrap_err();
    }
    let options = GenerateOptions { log_probs: Some(21), ..engine.generate_options() };
    block_on(engine.generate(&mut session, &prompt, &options, &mut |_| {})).unwrap_err();
}

#[test]
fn a_seed_is_a_text_and_another_seed_is_another_text() {
    let found = texts(&engine(cpu()), &[3, 4, 3]);
    assert_eq!(found[0], found[2]);
    assert_ne!(found[0], found[1]);
    assert!(found.iter().all(|text| !text.is_empty()));
}

/// A seed gives the same text, however much of the prompt is reused from a text before.
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
