//! Answers in a format, on every backend: each satisfies its schema, and a seed gives the same answer everywhere.

#[path = "../../constrain/tests/common/mod.rs"]
mod common;
#[path = "../../constrain/tests/common/demand.rs"]
mod demand;
#[path = "constrained/tiny.rs"]
mod tiny;

use std::future::ready;
use std::rc::Rc;

use anygpu::native::{NativeHost, block_on};
use anygpu::{Engine, EngineOptions, Finish, GenerateOptions, Overflow, Session};
use anygpu_constrain::{Format, Vocabulary};
use backend_api::{Backend, Error};
use common::{Random, fault, schema};
use demand::{Demand, TEMPLATES};
use model::{Adjust, AllowFuture, BytesSource, CallForm, Constraint, Generation, Sampling, SavedRequest};
use reference_cpu::Cpu;
use serde_json::{Value, json};

fn engine(backend: Box<dyn Backend>, n_ctx: usize) -> Engine {
    let (options, host) = (EngineOptions { n_ctx: Some(n_ctx), ..Default::default() }, Rc::new(NativeHost::default()));
    let file = tiny::file();
    let load = async { Engine::with_backend(backend, &BytesSource(&file), &options, host, &mut |_| {}).await };
    block_on(load).unwrap()
}

fn cpu() -> Box<dyn Backend> {
    Box::new(Cpu::new(Default::default()))
}

fn random(seed: u64) -> Sampling {
    Sampling::Random { temperature: 1.0, top_k: 0, top_p: 1.0, seed }
}

/// Generates an answer, of which `options.done` may already have tokens.
fn answer(
    engine: &Engine,
    session: &mut Session,
    options: &GenerateOptions,
) -> Result<Generation, anygpu::EngineError> {
    session.rewind(0);
    let text = [&engine.encode("the")?[..], &options.done].concat();
    block_on(engine.generate(session, &text, options, &mut |_| {}))
}

/// Returns answers to random schemas with these seeds; greedy ones for some of them.
fn answers(backend: Box<dyn Backend>, seeds: std::ops::Range<u64>) -> Vec<String> {
    let engine = engine(backend, 1024);
    let vocabulary = Vocabulary::new(engine.tokenizer().unwrap()).unwrap();
    let mut session = engine.session().unwrap();
    let mut answer = |seed, format: &Format| {
        let grammar = vocabulary.grammar(format).unwrap();
        let options = GenerateOptions {
            max_tokens: Some(1000),
            sampling: if seed % 8 == 0 { Sampling::Greedy } else { random(seed) },
            constraint: Some(grammar.constraint()),
            ..engine.generate_options()
        };
        let generation = answer(&engine, &mut session, &options).unwrap();
        assert_eq!(generation.finish, Finish::Stop, "{seed}: {format:?}: {}", generation.text);
        generation.text
    };
    let answer = |seed| {
        let mut random = Random::new(seed);
        // One in ten must call functions.
        if seed % 10 == 9 {
            let demand = Demand::new(TEMPLATES[seed as usize / 10 % TEMPLATES.len()], &mut random);
            // This model's thoughts would not end.
            let form = CallForm { thoughts: None, ..demand.form() };
            let text = answer(seed, &Format::Calls(Box::new(form)));
            assert_eq!(demand.read(&text).0, None, "{seed}: {text}");
            return text;
        }
        let schema = schema(&mut random);
        let text = answer(seed, &Format::Schema(schema.clone()));
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{seed}: {e}: {text}"));
        assert_eq!(fault(&schema, &schema, &value), None, "{seed}: {text}");
        text
    };
    seeds.map(answer).collect()
}

/// Compares a backend's answers with the CPU's.
fn like_the_cpu<B: Backend + 'static>(name: &str, seeds: std::ops::Range<u64>, open: impl Fn() -> Result<B, Error>) {
    if std::env::var("ANYGPU_SKIP").is_ok_and(|skip| skip.split(',').any(|s| s.trim() == name)) {
        println!("SKIPPED {name}: ANYGPU_SKIP names it");
        return;
    }
    let backend = open().unwrap_or_else(|e| panic!("{e}; or skip it with ANYGPU_SKIP={name}"));
    let (here, there) = (answers(Box::new(backend), seeds.clone()), answers(cpu(), seeds));
    for (here, there) in here.iter().zip(&there) {
        assert_eq!(here, there);
    }
    println!("{} answers on {name} as on the CPU, of {} bytes", here.len(), here.concat().len());
}

#[test]
fn answers_on_the_cpu_follow_their_schemas() {
    like_the_cpu("cpu", 0..200, || Ok(Cpu::new(reference_cpu::Options { fast: false, ..Default::default() })));
}

#[test]
fn answers_on_webgpu_are_those_of_the_cpu() {
    like_the_cpu("webgpu", 0..40, || block_on(backend_webgpu::WebGpu::open(Default::default())));
}

#[test]
fn answers_on_webgl_are_those_of_the_cpu() {
    like_the_cpu("webgl", 40..80, || backend_webgl::WebGl::open(Default::default()));
}

/// Makes options for an answer of some length.
fn list(engine: &Engine, sampling: Sampling) -> GenerateOptions {
    let vocabulary = Vocabulary::new(engine.tokenizer().unwrap()).unwrap();
    let word = json!({ "type": "string", "minLength": 3, "maxLength": 6 });
    let schema = json!({ "type": "array", "items": word, "minItems": 8, "maxItems": 8 });
    let constraint = Some(vocabulary.grammar(&Format::Schema(schema)).unwrap().constraint());
    GenerateOptions { max_tokens: Some(200), sampling, constraint, ..engine.generate_options() }
}

#[test]
fn an_answer_goes_on_where_it_was_broken_off_and_with_all_that_can_be_asked() {
    for n_ctx in [1024, 32] {
        let engine = engine(cpu(), n_ctx);
        for sampling in [Sampling::Greedy, random(5)] {
            let mut plain = list(&engine, sampling);
            plain.overflow = Overflow::Shift { keep: 1 };
            let mut session = engine.session().unwrap();
            let whole = answer(&engine, &mut session, &plain).unwrap();
            let value: Vec<String> = serde_json::from_str(&whole.text).unwrap();
            assert!(value.len() == 8 && whole.tokens.len() > 30 && whole.drafted_tokens == 0, "{}", whole.text);
            assert_eq!(whole.overflow.is_some(), n_ctx == 32);
            for (done, draft) in [(1, None), (9, Some(8)), (31, Some(3)), (whole.tokens.len(), None)] {
                let options = GenerateOptions {
                    done: whole.tokens[..done].to_vec(),
                    draft_max: draft,
                    fetch_interval: Some(7),
                    ..plain.clone()
                };
                let again = answer(&engine, &mut engine.session().unwrap(), &options).unwrap();
                assert_eq!((again.text, again.finish), (whole.text.clone(), Finish::Stop), "after {done}");
            }
            let told = GenerateOptions { log_probs: Some(2), ..plain.clone() };
            let told = answer(&engine, &mut session, &told).unwrap();
            assert_eq!((&told.text, told.log_probs.len()), (&whole.text, whole.tokens.len()));
            let adjust =
                Adjust { repetition_penalty: 1.5, min_p: 0.01, logit_bias: vec![(40, 100.0)], ..Adjust::default() };
            let adjusted = answer(&engine, &mut session, &GenerateOptions { adjust, ..plain.clone() }).unwrap();
            assert!(adjusted.text != whole.text && serde_json::from_str::<Vec<String>>(&adjusted.text).is_ok());
            // Without stop tokens, the answer ends with the format all the same.
            let endless = GenerateOptions { stop_tokens: Some(Vec::new()), ..plain.clone() };
            assert_eq!(answer(&engine, &mut session, &endless).unwrap().text, whole.text);
            let short =
                answer(&engine, &mut session, &GenerateOptions { max_tokens: Some(9), ..plain.clone() }).unwrap();
            assert!(short.finish == Finish::Length && whole.text.starts_with(&short.text));
            // Afterwards the same session is unconstrained.
            let free = GenerateOptions { constraint: None, ..plain.clone() };
            assert!(serde_json::from_str::<Value>(&answer(&engine, &mut session, &free).unwrap().text).is_err());
        }
    }
}

#[test]
fn a_saved_request_has_its_format_and_does_not_go_on_without() {
    let engine = engine(cpu(), 1024);
    let options = list(&engine, Sampling::Greedy);
    let saved = SavedRequest::of(&options, 3, None);
    let source = saved.constraint.clone().unwrap();
    let refused = saved.options(&[1, 2, 3], Sampling::Greedy, None).unwrap_err().to_string();
    assert!(refused.contains("ask anew"), "{refused}");
    let vocabulary = Vocabulary::new(engine.tokenizer().unwrap()).unwrap();
    let constraint = vocabulary.grammar(&Format::from_source(&source).unwrap()).unwrap().constraint();
    assert_eq!(constraint.source(), source);
    assert!(saved.options(&[1, 2, 3], Sampling::Greedy, Some(constraint)).unwrap().constraint.is_some());
}

/// A constraint that allows fixed tokens, whatever the answer is.
#[derive(Debug)]
struct Fixed(Vec<u32>, bool);

impl Constraint for Fixed {
    fn allow<'a>(&'a self, answer: &'a [u32], tokens: &'a mut [u32]) -> AllowFuture<'a> {
        if let Some(token) = self.0.get(answer.len()) {
            tokens[*token as usize / 32] |= 1 << (token % 32);
        }
        Box::pin(ready(Ok(self.1 && answer.len() >= self.0.len())))
    }

    fn source(&self) -> &str {
        "fixed"
    }
}

#[test]
fn whoever_implements_a_constraint_is_followed() {
    let engine = engine(cpu(), 1024);
    let mut session = engine.session().unwrap();
    let mut ask = |tokens: Vec<u32>, may_end| {
        let constraint: Option<Rc<dyn Constraint>> = Some(Rc::new(Fixed(tokens, may_end)));
        let options = GenerateOptions { constraint, sampling: random(1), ..engine.generate_options() };
        answer(&engine, &mut session, &options)
    };
    let generation = ask(vec![70, 71, 71, 90], true).unwrap();
    assert_eq!((generation.tokens, generation.finish), (vec![70, 71, 71, 90], Finish::Stop));
    // An empty answer is valid, too.
    let generation = ask(Vec::new(), true).unwrap();
    assert_eq!((generation.tokens.len(), generation.finish), (0, Finish::Stop));
    let error = ask(vec![70], false).unwrap_err().to_string();
    assert!(error.contains("no token of this model can come next"), "{error}");
    // The token that ends a text is not part of an answer.
    assert!(ask(vec![70, 2], true).unwrap_err().to_string().contains("no token"));
}
