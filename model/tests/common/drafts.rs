//! Drafts that are verified in one step.

use super::*;
use anygpu_model::Sampling;

/// With drafts a text has the tokens and the states, bit for bit, that it has without, drafts of so many tokens at most;
/// gives how many steps they saved.
pub fn drafts(name: &str, kv_cache: &str, backend: &Rc<dyn Backend>, lengths: &[usize]) -> usize {
    let bytes = models(&format!("fixtures/{name}.gguf"));
    let recipe = Recipe::new(&Gguf::from_bytes(&bytes).unwrap(), Some(256)).unwrap();
    let recipe = recipe.with_kv_cache(kv_cache.parse().unwrap());
    let (n_vocab, host) = (recipe.sizes().n_vocab as u32, NativeHost::default());
    let model = block_on(Model::load(&BytesSource(bytes), recipe, backend.clone(), &host, &mut |_, _| {})).unwrap();
    let model = Rc::new(model);
    let prompt: Vec<u32> = (0..40).map(|at| (at % 9 * 7 + 3) % n_vocab).collect();
    let random = Sampling::Random { temperature: 0.6, top_k: 4, top_p: 0.9, seed: 11 };
    // Some backends draft late.
    let (len, ends) = if backend.info().verify_after > 0 { (190, 150..152) } else { (86, 20..28) };
    let mut saved = 0;
    for sampling in [Sampling::Greedy, random] {
        let answer = |draft_max: usize, max_tokens: usize| {
            let stop_tokens = Some(Vec::new());
            let draft_max = Some(draft_max);
            let options = GenerateOptions {
                max_tokens: Some(max_tokens),
                sampling,
                stop_tokens,
                draft_max,
                ..Default::default()
            };
            let mut session = Session::with_capacity(model.clone(), 16).unwrap();
            let generation = block_on(session.generate(&prompt, &options, None, &host, &mut |_| {})).unwrap();
            // What comes after it, too: the last steps left their rows behind.
            let text = [&prompt[..], &generation.tokens].concat();
            let rest = session.resume(&text).to_vec();
            let logits = block_on(session.logits(&rest, false, &host)).unwrap();
            (block_on(session.export(&text, 0, &host)).unwrap(), logits, generation)
        };
        let (states, logits, plain) = answer(0, len);
        assert_eq!((plain.tokens.len(), plain.drafted_tokens), (len, 0));
        for most in lengths.iter().copied() {
            let (found, next, drafted) = answer(most, len);
            assert_eq!(drafted.tokens, plain.tokens, "{name}: other tokens with drafts of {most}");
            assert!(found == states, "{name} with {kv_cache}: other states with drafts of {most}");
            assert!(next == logits, "{name} with {kv_cache}: other logits with drafts of {most}");
            assert!(drafted.accepted_tokens <= drafted.drafted_tokens);
            saved += drafted.accepted_tokens;
        }
        // A text that ends in the middle of a draft.
        for max_tokens in ends.clone() {
            assert_eq!(answer(7, max_tokens).2.tokens, plain.tokens[..max_tokens], "{name}: {max_tokens} tokens");
        }
    }
    saved
}
