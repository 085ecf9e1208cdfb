//! A watcher sees the same numbers on every backend, and does not change results.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::backends::backends;
use anygpu::native::{NativeHost, block_on};
use anygpu::{Engine, EngineOptions, GenerateOptions, Watch, WatchedStep};
use backend_api::Backend;
use model::BytesSource;

const LLAMA: &[u8] = include_bytes!("../../models/fixtures/llama-gqa-tied.gguf");
const PROMPT: [u32; 3] = [3, 5, 7];

fn load(backend: Box<dyn Backend>) -> Engine {
    let options = EngineOptions { n_ctx: Some(64), ..Default::default() };
    let (source, host) = (BytesSource(LLAMA.to_vec()), Rc::new(NativeHost::default()));
    block_on(Engine::with_backend(backend, &source, &options, host, &mut |_| {})).unwrap()
}

fn tokens(engine: &Engine, mut on_token: impl FnMut()) -> Vec<u32> {
    let options = GenerateOptions { max_tokens: Some(12), fetch_interval: Some(1), ..Default::default() };
    let mut session = engine.session().unwrap();
    block_on(engine.generate(&mut session, &PROMPT, &options, &mut |_| on_token())).unwrap().tokens
}

/// Returns the tokens, and the watched steps by position.
fn seen(engine: &Engine) -> (Vec<u32>, HashMap<usize, WatchedStep>) {
    let watch = Watch::new(engine, |_, _| true).unwrap();
    let steps = RefCell::new(HashMap::new());
    let tokens = tokens(engine, || {
        while let Some(step) = watch.step().unwrap() {
            steps.borrow_mut().insert(step.position, step);
        }
    });
    let rest = block_on(watch.end(engine.host())).unwrap();
    let mut steps = steps.into_inner();
    steps.extend(rest.into_iter().map(|step| (step.position, step)));
    (tokens, steps)
}

/// Returns the power of the error relative to the signal's.
fn nmse(found: &[f32], expected: &[f32]) -> f64 {
    let power = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
    let error = power(&mut found.iter().zip(expected).map(|(a, b)| f64::from(*a) - f64::from(*b)));
    error / power(&mut expected.iter().map(|v| f64::from(*v))).max(f64::MIN_POSITIVE)
}

#[test]
fn all_backends_show_the_same_numbers() {
    let mut reference: Option<HashMap<usize, WatchedStep>> = None;
    let mut all = backends();
    all.sort_by_key(|(name, _)| *name != "reference");
    for (name, backend) in all {
        let engine = load(backend);
        let before = tokens(&engine, || {});
        let (while_watched, steps) = seen(&engine);
        assert_eq!(while_watched, before, "{name}: the text while it is watched");
        let spent = |engine: &Engine| {
            let before = engine.backend().stats();
            assert_eq!(tokens(engine, || {}), while_watched, "{name}: the text afterwards");
            engine.backend().stats().since(&before)
        };
        // After the watch has ended, steps read only the tokens.
        let after = spent(&engine);
        assert!(after.read_back < 1000, "{name}: {after:?} is spent while nobody watches");
        // One token belongs to the prompt, and the step after the last token is not computed.
        let all = PROMPT.len()..PROMPT.len() + while_watched.len() - 1;
        assert!(all.clone().all(|position| steps.contains_key(&position)), "{name}: {:?} of {all:?}", steps.keys());
        let Some(reference) = &reference else {
            reference = Some(steps);
            continue;
        };
        let mut compared = 0;
        for (position, step) in steps {
            let Some(expected) = reference.get(&position) else { continue };
            for matrix in &step.matrices {
                // Fused kernels have fewer results, and scratch memory has no counterpart.
                let same = expected.matrices.iter().find(|other| other.made == matrix.made);
                let Some(same) = same else { continue };
                let error = nmse(&matrix.values, &same.values);
                assert!(error < 1e-6, "{name}: {} at {position} differs by {error:e}", matrix.made.name);
                compared += 1;
            }
        }
        assert!(compared >= 10, "{name}: only {compared} matrices have a counterpart");
        println!("{name}: {compared} matrices as the reference has them");
    }
}
