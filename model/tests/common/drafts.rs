//! Tests of speculative decoding.

use super::*;
use anygpu_model::{Finish, Sampling, Tokenizer};
use backend_api::Format;
use std::cell::Cell;

/// A text with drafts has the same tokens and states as without, bit for bit, for drafts of these lengths. Returns how
/// many steps drafts saved.
pub fn drafts(name: &str, kv_cache: &str, backend: &Rc<dyn Backend>, lengths: &[usize]) -> usize {
    let bytes = models(&format!("fixtures/{name}.gguf"));
    let recipe = Recipe::new(&Gguf::from_bytes(&bytes).unwrap(), Some(256)).unwrap();
    let recipe = recipe.with_kv_cache(kv_cache.parse().unwrap());
    let (n_vocab, host) = (recipe.sizes().n_vocab as u32, NativeHost::default());
    let model = block_on(Model::load(&BytesSource(bytes), recipe, backend.clone(), &host, &mut |_, _| {})).unwrap();
    let model = Rc::new(model);
    let prompt: Vec<u32> = (0..40).map(|at| (at % 9 * 7 + 3) % n_vocab).collect();
    let random = Sampling::Random { temperature: 0.6, top_k: 4, top_p: 0.9, seed: 11 };
    // Some backends draft only after many correct guesses.
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
            // The continuation must be the same, too: the last steps left rows of rejected tokens.
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
        // The text ends in the middle of a draft.
        for max_tokens in ends.clone() {
            assert_eq!(answer(7, max_tokens).2.tokens, plain.tokens[..max_tokens], "{name}: {max_tokens} tokens");
        }
    }
    saved
}

/// Loads the built-in model or, without `is_exact`, a variant that agrees with it only sometimes: one bit of each
/// number in some blocks of weights is flipped.
fn gab(backend: &Rc<dyn Backend>, is_exact: bool) -> (Rc<Model>, Tokenizer) {
    let mut bytes = models("gab-q4_0.gguf");
    let gguf = Gguf::from_bytes(&bytes).unwrap();
    let (block_bytes, host) = (Format::Q4_0.row_bytes(32).unwrap(), NativeHost::default());
    for tensor in gguf.tensors.iter().filter(|tensor| !is_exact && tensor.format == Format::Q4_0) {
        let all = &mut bytes[tensor.offset as usize..][..tensor.bytes as usize];
        for block in all.chunks_exact_mut(block_bytes).step_by(3) {
            block[2..].iter_mut().for_each(|pair| *pair ^= 0x11);
        }
    }
    let recipe = Recipe::new(&gguf, Some(256)).unwrap();
    let tokenizer = Tokenizer::from_metadata(&gguf.metadata).unwrap();
    let model = block_on(Model::load(&BytesSource(bytes), recipe, backend.clone(), &host, &mut |_, _| {})).unwrap();
    (Rc::new(model), tokenizer)
}

/// A draft model drafts. Whether it agrees with the model or not, a conversation has the same tokens and states as
/// without drafts, bit for bit: over turns, with cancelled and stopped answers, and rewound to an earlier turn.
pub fn drafts_by_model(backend: &Rc<dyn Backend>, is_drawn: bool, is_exact: bool) {
    let host = NativeHost::default();
    let (model, tokenizer) = gab(backend, true);
    let random = Sampling::Random { temperature: 0.9, top_k: 20, top_p: 0.95, seed: 7 };
    let sampling = if is_drawn { random } else { Sampling::Greedy };
    // Drafts count as cheap, so that there are many.
    let talk = |draft: Option<&Rc<Model>>| {
        let mut session = Session::with_capacity(model.clone(), 16).unwrap();
        draft.iter().for_each(|draft| {
            let small = Session::with_capacity(Rc::clone(draft), 16).unwrap();
            session.set_draft(small, 0.01).unwrap();
        });
        let mut text = tokenizer.encode("Once upon a time", true, true);
        let (mut ends, mut counts) = (Vec::new(), [0, 0]);
        let mut answer = |text: &[u32], max_tokens: usize, stop: &str, cancelled: usize| {
            let cancel = Rc::new(Cell::new(false));
            let options = GenerateOptions {
                max_tokens: Some(max_tokens),
                sampling,
                stop: [stop].into_iter().filter(|stop| !stop.is_empty()).map(String::from).collect(),
                stop_tokens: Some(Vec::new()),
                cancel: Some(cancel.clone()),
                ..Default::default()
            };
            let mut told = 0;
            let mut on_piece = |piece: anygpu_model::Piece<'_>| {
                told += usize::from(piece.token.is_some());
                cancel.set(told >= cancelled);
            };
            let answer = session.generate_after(text, &options, Some(&tokenizer), &host, &mut on_piece);
            let generation = block_on(answer).unwrap();
            counts[0] += generation.drafted_tokens;
            counts[1] += generation.accepted_tokens;
            ends.push(generation.finish);
            generation.tokens
        };
        let first = text.clone();
        for (said, max_tokens, stop, cancelled) in
            [("", 50, "", 99), (" One day", 21, "", 99), (" The end.", 40, ".", 99), (" Tom", 40, "", 9)]
        {
            text.extend(tokenizer.encode(said, false, true));
            text.extend(answer(&text, max_tokens, stop, cancelled));
        }
        let again = [&first[..], &tokenizer.encode(", a cat", false, true)].concat();
        let again = [&again[..], &answer(&again, 30, "", 99)].concat();
        let states = block_on(session.export(&again, 0, &host)).unwrap();
        (text, again, ends, states, counts)
    };
    let (text, again, ends, states, _) = talk(None);
    assert_eq!(ends[1..4], [Finish::Length, Finish::Stop, Finish::Cancelled]);
    let (small, _) = gab(backend, is_exact);
    let found = talk(Some(&small));
    let here = format!("{sampling:?}, exact: {is_exact}");
    assert_eq!((&found.0, &found.1, &found.2), (&text, &again, &ends), "{here}");
    assert!(found.3 == states, "{here}: other states");
    let [drafted, accepted] = found.4;
    let right = if is_exact { 9 * drafted / 10..=drafted } else { 8..=9 * drafted / 10 };
    assert!(drafted > 40 && right.contains(&accepted), "{here}: {accepted} of {drafted}");
}
