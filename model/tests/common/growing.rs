//! Tests of growing KV caches.

use super::*;
use anygpu_model::Generation;
use anygpu_model::arch::HISTORY;
use backend_api::Update;

/// A text whose caches grow repeatedly has the same logits and tokens, bit for bit, as one whose caches were large from
/// the beginning. It takes less memory while it is short.
pub fn growing(name: &str, kv_cache: &str, backend: &Rc<dyn Backend>) {
    const TEXT: usize = 70;
    let bytes = models(&format!("fixtures/{name}.gguf"));
    let recipe = Recipe::new(&Gguf::from_bytes(&bytes).unwrap(), Some(256)).unwrap();
    let recipe = recipe.with_kv_cache(kv_cache.parse().unwrap());
    let (n_vocab, host) = (recipe.sizes().n_vocab as u32, NativeHost::default());
    let model = block_on(Model::load(&BytesSource(bytes), recipe, backend.clone(), &host, &mut |_, _| {})).unwrap();
    let model = Rc::new(model);
    let text: Vec<u32> = (0..TEXT as u32).map(|at| (at * 7 + 3) % n_vocab).collect();
    let with_room = |tokens| Session::with_capacity(model.clone(), tokens).unwrap();
    let options = GenerateOptions {
        max_tokens: Some(40),
        stop_tokens: Some(Vec::new()),
        fetch_interval: Some(4),
        ..GenerateOptions::default()
    };
    let answer = |session: &mut Session| -> Generation {
        let prompt = session.resume(&text[..5]).to_vec();
        block_on(session.generate(&prompt, &options, None, &host, &mut |_| {})).unwrap()
    };

    let memory = || backend.stats().memory;
    let before = memory();
    let mut large = with_room(256);
    let large_bytes = memory() - before;
    let mut small = with_room(1);
    let small_bytes = memory() - before - large_bytes;
    let states = model.recipe().states().unwrap();
    let caches = states.iter().filter(|state| state.update == Update::Append && state.name != HISTORY).count();
    assert_eq!(small_bytes < large_bytes, caches > 0, "{name}: {small_bytes} bytes of {large_bytes}");

    let tokens = answer(&mut large).tokens;
    assert_eq!(answer(&mut small).tokens, tokens, "{name}: decoded from 5 tokens to 45");
    // Tokens are added in one step or one by one, beyond several sizes of the caches.
    let (mut ours, mut theirs) = (with_room(2), with_room(256));
    for part in [&text[..1], &text[1..4], &text[4..20], &text[20..21], &text[21..22], &text[22..TEXT]] {
        let found = block_on(ours.logits(part, true, &host)).unwrap();
        assert!(found == block_on(theirs.logits(part, true, &host)).unwrap(), "{name} with {kv_cache}: other logits");
    }
    // A snapshot has only the rows of the text, and can be loaded into smaller caches.
    let snapshot = block_on(ours.export(&text, 0, &host)).unwrap();
    assert!(snapshot == block_on(theirs.export(&text, 0, &host)).unwrap(), "{name}: other states");
    let mut back = with_room(1);
    block_on(back.import(&snapshot, &host)).unwrap();
    let rest = back.resume(&text).to_vec();
    let found = block_on(back.logits(&rest, false, &host)).unwrap();
    theirs.rewind(TEXT - rest.len());
    assert!(found == block_on(theirs.logits(&rest, false, &host)).unwrap(), "{name}: after coming back");
}
