use std::rc::Rc;

use anygpu_model::{
    BytesSource, GenerateOptions, Gguf, KvCache, Model, ModelError, Recipe, Sampling, Session, Snapshot, SnapshotError,
};
use backend_api::Backend;
use backend_api::run::NativeHost;
use reference_cpu::{Cpu, Options};

use super::{Fixture, block_on, models};

/// Number of generated tokens.
const TOKENS: usize = 12;
/// Number of them before the text is saved.
const DONE: usize = 5;

fn session(fixture: &Fixture, kv_cache: KvCache, backend: &Rc<dyn Backend>) -> Session {
    let bytes = models(&format!("fixtures/{}", fixture.model));
    let recipe = Recipe::new(&Gguf::from_bytes(&bytes).unwrap(), Some(fixture.n_ctx)).unwrap();
    let (source, host) = (BytesSource(bytes), NativeHost::default());
    let recipe = recipe.with_kv_cache(kv_cache);
    let model = block_on(Model::load(&source, recipe, backend.clone(), &host, &mut |_, _| {})).unwrap();
    Session::new(Rc::new(model)).unwrap()
}

fn generate(session: &mut Session, prompt: &[u32], max_tokens: usize, done: &[u32]) -> Vec<u32> {
    let options = GenerateOptions {
        max_tokens: Some(max_tokens),
        sampling: Sampling::Random { temperature: 1.0, top_k: 0, top_p: 1.0, seed: 3 },
        stop_tokens: Some(Vec::new()),
        done: done.to_vec(),
        ..GenerateOptions::default()
    };
    let rest = session.resume(prompt).to_vec();
    let mut told = Vec::new();
    let all = block_on(session.generate(&rest, &options, None, &NativeHost::default(), &mut |piece| {
        told.extend(piece.token);
    }));
    let all = all.unwrap().tokens;
    assert_eq!(all[done.len()..], told, "tokens that were known are not told again");
    all
}

/// A text that is saved in the middle of a generation continues unchanged: on the same backend, on the plain CPU
/// backend, and back; as a whole and in parts.
pub fn saved(name: &str, kv_cache: &str, backend: &Rc<dyn Backend>) {
    let kv_cache: KvCache = kv_cache.parse().unwrap();
    let manifest: Vec<Fixture> = serde_json::from_slice(&models("fixtures/manifest.json")).unwrap();
    let fixture = manifest.into_iter().find(|f| f.model == format!("{name}.gguf")).unwrap();
    let plain: Rc<dyn Backend> = Rc::new(Cpu::new(Options { fast: false, ..Default::default() }));
    let prompt = &fixture.tokens[..6];
    let undisturbed = generate(&mut session(&fixture, kv_cache, backend), prompt, TOKENS, &[]);
    let mut here = session(&fixture, kv_cache, backend);
    let done = generate(&mut here, prompt, DONE, &[]);
    assert_eq!(done, undisturbed[..DONE]);
    let text = [prompt, &done].concat();
    let bytes = export(&mut here, &text, 0);

    // It is loaded on the same backend and on the CPU, and from there back.
    let mut again = session(&fixture, kv_cache, backend);
    let mut cpu = session(&fixture, kv_cache, &plain);
    for other in [&mut again, &mut cpu] {
        import(other, &bytes).unwrap();
        assert_eq!(generate(other, &text, TOKENS, &done), undisturbed, "{name} with a cache of {kv_cache}");
    }
    import(&mut cpu, &bytes).unwrap();
    let more = generate(&mut cpu, &text, DONE + 3, &done);
    assert_eq!(more, undisturbed[..DONE + 3]);
    let longer = [prompt, &more].concat();
    let later = export(&mut cpu, &longer, text.len() - 1);
    assert!(later.len() < bytes.len() || !appends(&fixture, kv_cache, backend), "what is new is less than all");
    for log in [export(&mut cpu, &longer, 0), [&bytes[..], &later].concat()] {
        import(&mut again, &log).unwrap();
        assert_eq!(generate(&mut again, &longer, TOKENS, &more), undisturbed, "{name}: back from the CPU");
    }

    // A snapshot that does not fit is refused, and the session does not change.
    if kv_cache != KvCache::default() {
        let refused = import(&mut session(&fixture, KvCache::default(), backend), &bytes);
        assert!(matches!(refused, Err(ModelError::Snapshot(SnapshotError::Other { .. }))), "{refused:?}");
    }
    let refused = import(&mut again, &later);
    assert!(matches!(refused, Err(ModelError::Snapshot(SnapshotError::Gap { .. }))), "{refused:?}");
    assert_eq!(generate(&mut again, &longer, TOKENS, &more), undisturbed, "{name}: after a refusal");
}

/// Returns whether it has a KV cache beside the history.
fn appends(fixture: &Fixture, kv_cache: KvCache, backend: &Rc<dyn Backend>) -> bool {
    let states = session(fixture, kv_cache, backend).model().recipe().states().unwrap();
    states.iter().filter(|state| state.update == backend_api::Update::Append).count() > 1
}

fn export(session: &mut Session, text: &[u32], from: usize) -> Vec<u8> {
    block_on(session.export(text, from, &NativeHost::default())).unwrap().to_bytes()
}

fn import(session: &mut Session, bytes: &[u8]) -> Result<(), ModelError> {
    let snapshot = Snapshot::from_bytes(bytes)?;
    block_on(session.import(&snapshot, &NativeHost::default()))
}
