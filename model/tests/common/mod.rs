//! Tests of whole models against reference results, for any backend.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use anygpu_model::{ByteSource, BytesSource, GenerateOptions, Gguf, KvCache, Model, Recipe, Session};
use backend_api::run::NativeHost;
use backend_api::{Backend, Codec, compare};
use reference_cpu::{Cpu, Options};

mod again;
mod batch;
mod chain;
mod drafts;
mod embeddings;
mod growing;
mod saved;
mod sequences;
mod shift;
mod stages;
mod states;
pub mod turns;

pub use again::again;
pub use batch::{batch, compiled_ahead, drafts_beside, prompt_beside, prompt_rows_beside, requests_together, room};
pub use chain::{back, chain, lost};
pub use drafts::{drafts, drafts_by_model};
pub use embeddings::{embedding, embedding_again, encoders, minilm};
pub use growing::growing;
pub use saved::saved;
pub use sequences::sequences;
pub use shift::{overflows, shift};
pub use stages::stages;
pub use states::{convolution, states_apart};
pub use turns::{saving, turns};

/// Polls a future until it is ready, without waiting for wakers.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return result;
        }
    }
}

/// Reads a file of the repository's `models` folder.
pub fn models(file: &str) -> Vec<u8> {
    let path = root().join("models").join(file);
    std::fs::read(&path).unwrap_or_else(|e| panic!("models/{file}: {e}; fetch it with `cargo xtask models`"))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Loads a model on a backend.
pub fn load(bytes: Vec<u8>, n_ctx: Option<usize>, backend: Rc<dyn Backend>) -> Rc<Model> {
    load_from(&BytesSource(bytes), n_ctx, backend)
}

/// Loads a model from any source on a backend.
pub fn load_from(source: &dyn ByteSource, n_ctx: Option<usize>, backend: Rc<dyn Backend>) -> Rc<Model> {
    let gguf = block_on(Gguf::read(source)).unwrap();
    let recipe = Recipe::new(&gguf, n_ctx).unwrap();
    let (mut done, mut total) = (0, 0);
    let mut progress = |d, t| (done, total) = (d, t);
    let (planned, before) = (Model::footprint(&recipe, &*backend).unwrap(), backend.stats().memory);
    let model = block_on(Model::load(source, recipe, backend.clone(), &NativeHost::default(), &mut progress)).unwrap();
    assert!(done == total && total > 0, "progress ended at {done} of {total}");
    let loaded = backend.stats().memory;
    assert_eq!(loaded - before, planned.weights, "bytes of weights");
    let model = Rc::new(model);
    // A session is created and dropped, to see that its memory is freed.
    if model.recipe().pooling().is_none() {
        drop(Session::new(model.clone()).unwrap());
        assert_eq!(backend.stats().memory, loaded, "bytes after a text");
        let session = Session::with_capacity(model.clone(), model.recipe().sizes().n_ctx).unwrap();
        assert_eq!(backend.stats().memory - loaded, planned.states, "bytes of states");
        drop(session);
    }
    model
}

/// Returns the squared differences divided by the squared reference values.
pub fn nmse(found: &[f32], reference: &[f32]) -> f64 {
    compare::nmse(&found.into(), &reference.into()).unwrap()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn best(logits: &[f32]) -> usize {
    (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b])).unwrap()
}

#[derive(serde::Deserialize)]
struct Fixture {
    model: String,
    n_ctx: usize,
    tokens: Vec<u32>,
    /// Positions of the rows of the logits, in order; all if there is no list.
    positions: Option<Vec<usize>>,
    logits: String,
    nmse_vs_float64_numpy: f64,
}

/// Tests the KV cache in each codec: close to the exact one, and equal to that of the plain CPU backend.
pub fn codecs(name: &str, backend: Rc<dyn Backend>) {
    let manifest: Vec<Fixture> = serde_json::from_slice(&models("fixtures/manifest.json")).unwrap();
    let fixture = manifest.into_iter().find(|f| f.model == format!("{name}.gguf")).unwrap();
    let exact = floats(&models(&format!("fixtures/{}", fixture.logits)));
    let plain: Rc<dyn Backend> = Rc::new(Cpu::new(Options { fast: false, ..Default::default() }));
    for codec in Codec::ALL {
        let logits = |backend: &Rc<dyn Backend>| {
            let bytes = models(&format!("fixtures/{}", fixture.model));
            let recipe = Recipe::new(&Gguf::from_bytes(&bytes).unwrap(), Some(fixture.n_ctx)).unwrap();
            let recipe = recipe.with_kv_cache(KvCache::coded(*codec));
            let (source, host) = (BytesSource(bytes), NativeHost::default());
            let model = block_on(Model::load(&source, recipe, backend.clone(), &host, &mut |_, _| {})).unwrap();
            let mut session = Session::new(Rc::new(model)).unwrap();
            // The first half is prefilled, the rest is decoded one token at a time.
            let (front, rest) = fixture.tokens.split_at(fixture.tokens.len() / 2);
            let mut logits = block_on(session.logits(front, true, &host)).unwrap();
            for token in rest {
                logits.extend(block_on(session.logits(&[*token], true, &host)).unwrap());
            }
            logits
        };
        let (ours, theirs) = (logits(&backend), logits(&plain));
        let (off, apart) = (nmse(&ours, &exact), nmse(&ours, &theirs));
        println!("{name} with a cache of {}: NMSE {off:.1e}, {apart:.1e} from the CPU's", codec.spec().name);
        // Rounding to 2^b levels has a relative squared error of 4^-b. Tiny models amplify it several times.
        let bits = codec.spec().levels.map_or(11, |levels| levels.bits);
        let most = (16.0 * 0.25f64.powi(bits as i32)).max(1e-3);
        assert!(off <= most, "{name} with {}: NMSE {off:.2e}", codec.spec().name);
        // Earlier rounding may move a few numbers by a level, which is far less than the error of the codec.
        let few = codec.spec().tolerance.max(off / 100.0);
        assert!(apart <= few, "{name} with {}: NMSE {apart:.2e} from the CPU's", codec.spec().name);
    }
}

/// Compares a tiny model's logits at every position with llama.cpp's: prefilled at once, token by token, and in two
/// parts, in each context that the manifest lists.
pub fn fixture(name: &str, backend: Rc<dyn Backend>) {
    let manifest: Vec<Fixture> = serde_json::from_slice(&models("fixtures/manifest.json")).unwrap();
    let contexts: Vec<_> = manifest.into_iter().filter(|f| f.model == format!("{name}.gguf")).collect();
    assert!(!contexts.is_empty(), "{name} is not in the manifest");
    contexts.iter().for_each(|fixture| known_answers(name, fixture, backend.clone()));
}

/// Tests the families that share a page, and others whose fixtures are beside theirs, as [`fixture`] does.
pub fn families(backend: &Rc<dyn Backend>) {
    names_of_families().iter().for_each(|name| fixture(name, backend.clone()));
}

/// Lists the fixtures of such families.
pub fn names_of_families() -> Vec<String> {
    let manifest: Vec<Fixture> = serde_json::from_slice(&models("fixtures/manifest.json")).unwrap();
    let names =
        manifest.iter().filter_map(|f| f.model.strip_suffix(".gguf")).filter(|name| name.starts_with("families/"));
    let names: Vec<String> = names.map(String::from).collect();
    assert!(names.len() > 40, "{names:?}");
    names
}

fn known_answers(name: &str, fixture: &Fixture, backend: Rc<dyn Backend>) {
    let reference = floats(&models(&format!("fixtures/{}", fixture.logits)));
    let model = load(models(&format!("fixtures/{}", fixture.model)), Some(fixture.n_ctx), backend);
    let (host, tokens) = (NativeHost::default(), &fixture.tokens);
    let n_vocab = model.recipe().sizes().n_vocab;
    let mut session = Session::new(model).unwrap();

    let at_once = block_on(session.logits(tokens, true, &host)).unwrap();
    session.rewind(0);
    // Tokens that see each other are computed at once only.
    let (mut one_by_one, mut rest) = (Vec::new(), Vec::new());
    if session.model().recipe().is_causal() {
        for token in tokens {
            one_by_one.extend(block_on(session.logits(&[*token], true, &host)).unwrap());
        }
        session.rewind(5);
        rest = block_on(session.logits(&tokens[5..], true, &host)).unwrap();
        session.rewind(0);
    }
    let last = block_on(session.logits(tokens, false, &host)).unwrap();

    // llama.cpp quantises activations for quantised weights, so its own error is this large, as the manifest says.
    let limit = (1.1 * fixture.nmse_vs_float64_numpy).max(1e-6);
    // The error of a few positions varies more than that of all.
    let part = if limit <= 1e-6 { limit } else { 1e-2 };
    let noise = 4.0 * (limit as f32).sqrt();
    let positions = fixture.positions.clone().unwrap_or_else(|| (0..tokens.len()).collect());
    let answers = || positions.iter().copied().zip(reference.chunks(n_vocab));
    for (way, logits, first, limit) in [
        ("at once", &at_once, 0, limit),
        ("one by one", &one_by_one, 0, limit),
        ("in two parts", &rest, 5, part),
        ("the last", &last, tokens.len() - 1, part),
    ] {
        if logits.is_empty() {
            continue;
        }
        assert_eq!(logits.len(), (tokens.len() - first) * n_vocab);
        let of = |position: usize| &logits[(position - first) * n_vocab..][..n_vocab];
        let known: Vec<_> = answers().filter(|(position, _)| *position >= first).collect();
        assert!(!known.is_empty(), "{name} {way}: no answer is known");
        let (ours, theirs): (Vec<&[f32]>, Vec<&[f32]>) = known.iter().map(|(at, theirs)| (of(*at), *theirs)).unzip();
        let error = nmse(&ours.concat(), &theirs.concat());
        println!("{name} {way}: NMSE {error:.1e}");
        assert!(error <= limit, "{name} {way}: NMSE {error:.2e}");
        for (position, theirs) in known {
            let ours = of(position);
            // If llama.cpp's error is as large as the gap between two tokens, either may be the best.
            let noise = noise * (theirs.iter().map(|x| x * x).sum::<f32>() / n_vocab as f32).sqrt();
            let gap = theirs[best(theirs)] - theirs[best(ours)];
            assert!(gap <= noise, "{name} {way}: the best token at {position} is off by {gap}, noise is {noise}");
            let error = nmse(ours, theirs);
            assert!(error <= part, "{name} {way}: NMSE {error:.2e} at {position}");
        }
    }
    // Different ways to compute the same must agree far better than with an engine that quantises activations.
    let error = if one_by_one.is_empty() { 0.0 } else { nmse(&one_by_one, &at_once) };
    assert!(error <= 1e-9, "{name}: one by one differs from at once by NMSE {error:.2e}");
}

/// Compares the built-in model's greedy tokens for all reference prompts, up to `n` for each.
pub fn gab(backend: Rc<dyn Backend>, n: usize) {
    let reference: serde_json::Value = serde_json::from_slice(&models("gab.reference.json")).unwrap();
    let cases = reference["files"]["gab-q4_0.gguf"].as_array().unwrap();
    assert_eq!(cases.len(), 6);
    let mut session = Session::new(load(models("gab-q4_0.gguf"), None, backend)).unwrap();
    for case in cases {
        let ids = |key: &str| -> Vec<u32> { serde_json::from_value(case[key].clone()).unwrap() };
        let options =
            GenerateOptions { max_tokens: Some(n), stop_tokens: Some(Vec::new()), ..GenerateOptions::default() };
        let (host, prompt) = (NativeHost::default(), ids("prompt_ids"));
        session.rewind(0);
        let generation = block_on(session.generate(&prompt, &options, None, &host, &mut |_| {})).unwrap();
        assert_eq!(generation.tokens, ids("greedy_ids")[..n], "{}", case["prompt"]);
        session.rewind(0);
        let logits = block_on(session.logits(&prompt, false, &host)).unwrap();
        for pair in case["top10"].as_array().unwrap() {
            let (id, logit) = (pair[0].as_u64().unwrap() as usize, pair[1].as_f64().unwrap());
            let near = approx::abs_diff_eq!(f64::from(logits[id]), logit, epsilon = 2e-3);
            assert!(near, "{}: logit of {id} is {}, not {logit}", case["prompt"], logits[id]);
        }
    }
}

/// Returns how many prompts a device runs: slow ones run a single one, with fewer tokens.
fn prompts(n: usize) -> usize {
    if n < 8 { 1 } else { usize::MAX }
}

/// Compares SmolLM2's logits and greedy tokens, at most `n` for each prompt.
pub fn smollm2(backend: Rc<dyn Backend>, n: usize) {
    real("SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2_f32.json", backend, n, prompts(n));
}

/// Compares Gemma 3 with 270M parameters, most of which are embeddings.
pub fn gemma3(backend: Rc<dyn Backend>, n: usize) {
    real("gemma-3-270m-q4_k_m.gguf", "gemma3_f32.json", backend, n, prompts(n));
}

/// Compares a model's logits after each reference prompt, and its greedy tokens up to the first step at which rounding
/// may decide. Runs at most `n` tokens for each of so many prompts.
fn real(file: &str, reference: &str, backend: Rc<dyn Backend>, n: usize, prompts: usize) {
    let data = root().join("model/tests/data");
    let reference: serde_json::Value = serde_json::from_slice(&std::fs::read(data.join(reference)).unwrap()).unwrap();
    let model = load(models(&format!("cache/{file}")), Some(512), backend);
    let mut session = Session::new(model).unwrap();
    for (name, case) in reference["cases"].as_object().unwrap().iter().take(prompts) {
        let ids = |key: &str| -> Vec<u32> { serde_json::from_value(case[key].clone()).unwrap() };
        let margins: Vec<f32> = serde_json::from_value(case["margins_top1_top2"].clone()).unwrap();
        let expected = ids("greedy_ids");
        let sure = margins.iter().position(|m| *m < 0.01).unwrap_or(expected.len());
        assert!(sure > 0, "{name} compares nothing");
        let sure = sure.min(n);
        let (host, prompt) = (NativeHost::default(), ids("prompt_ids"));

        session.rewind(0);
        let logits = block_on(session.logits(&prompt, false, &host)).unwrap();
        let known = data.join(case["logits_f32_file"].as_str().unwrap());
        let error = nmse(&logits, &floats(&std::fs::read(known).unwrap()));
        println!("{file} {name}: NMSE {error:.1e}, {sure} sure tokens");
        assert!(error <= 1e-6, "{file} {name}: NMSE {error:.2e}");

        session.rewind(0);
        let options =
            GenerateOptions { max_tokens: Some(sure), stop_tokens: Some(Vec::new()), ..GenerateOptions::default() };
        let generation = block_on(session.generate(&prompt, &options, None, &host, &mut |_| {})).unwrap();
        assert_eq!(generation.tokens, expected[..sure], "{file} {name}");
    }
}
