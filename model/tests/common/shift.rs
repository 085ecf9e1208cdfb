//! Tests of context shifts: texts that outgrow the context, whose oldest tokens are dropped.

use std::rc::Rc;

use anygpu_model::{
    Finish, GenerateOptions, Generation, ModelError, Overflow, Overflowed, Sampling, Session, Snapshot,
};
use backend_api::Backend;
use reference_cpu::{Cpu, Options};

use super::{Fixture, NativeHost, block_on, load, models};

const N_CTX: usize = 24;
/// Number of first tokens that stay.
const KEEP: usize = 3;
/// Number of tokens that a shift drops: half of the others.
const STEP: usize = 10;
/// Number of generated tokens: enough for three shifts.
const TOKENS: usize = 46;

struct Text {
    prompt: Vec<u32>,
    options: GenerateOptions,
}

impl Text {
    /// Generates the continuation of a text. Checks that each token is reported once, and each shift before it is
    /// computed.
    fn generate(&self, session: &mut Session, text: &[u32], change: &dyn Fn(&mut GenerateOptions)) -> Generation {
        let mut options = self.options.clone();
        change(&mut options);
        let (mut told, mut dropped) = (Vec::new(), None::<Overflowed>);
        let host = NativeHost::default();
        let ended = block_on(session.generate_after(text, &options, None, &host, &mut |piece| {
            told.extend(piece.token);
            if let Some(overflow) = piece.overflow {
                assert!(piece.token.is_none() && piece.text.is_empty());
                assert_eq!(overflow.times, dropped.map_or(overflow.times, |before| before.times + 1));
                dropped = Some(overflow);
            }
        }));
        let generation = ended.unwrap();
        assert_eq!(generation.tokens[options.done.len()..], told);
        if let (Some(overflow), true) = (dropped, options.done.is_empty()) {
            let Overflowed { dropped_tokens, times, .. } = generation.overflow.unwrap();
            assert_eq!((overflow.dropped_tokens, overflow.times), (dropped_tokens, times));
        }
        generation
    }

    /// Generates without shifts: starts anew after each one, from the tokens that it leaves.
    fn by_hand(&self, session: &mut Session) -> (Vec<u32>, Vec<u32>) {
        let (mut context, mut made) = (self.prompt.clone(), Vec::new());
        loop {
            session.rewind(0);
            let left = TOKENS - made.len();
            let fresh = self.generate(session, &context, &|options| {
                (options.overflow, options.max_tokens) = (Overflow::Stop, Some(left));
            });
            made.extend(&fresh.tokens);
            context.extend(&fresh.tokens);
            assert_eq!(fresh.finish, Finish::Length);
            assert_eq!(fresh.overflow.is_some(), made.len() < TOKENS, "whether the context ended it");
            if made.len() == TOKENS {
                return (made, context);
            }
            assert_eq!(context.len(), N_CTX);
            context.drain(KEEP..KEEP + STEP);
        }
    }
}

/// A shifted text equals fresh generations from the remaining tokens, bit for bit. It can be resumed after every
/// `every` tokens, around the first shift, and from snapshots.
pub fn shift(name: &str, backend: &Rc<dyn Backend>, every: usize) {
    let manifest: Vec<Fixture> = serde_json::from_slice(&models("fixtures/manifest.json")).unwrap();
    let fixture = manifest.into_iter().find(|f| f.model == format!("{name}.gguf")).unwrap();
    let file = || models(&format!("fixtures/{}", fixture.model));
    let model = load(file(), Some(N_CTX), backend.clone());
    let session = || Session::new(model.clone()).unwrap();
    let sampling = Sampling::Random { temperature: 1.0, top_k: 0, top_p: 1.0, seed: 11 };
    // Software GPUs are slow, and the greedy text shows nothing that the other does not.
    for sampling in [sampling, Sampling::Greedy].into_iter().take(if every == 1 { 2 } else { 1 }) {
        let options = GenerateOptions {
            max_tokens: Some(TOKENS),
            overflow: Overflow::Shift { keep: KEEP },
            sampling,
            stop_tokens: Some(Vec::new()),
            ..GenerateOptions::default()
        };
        let text = Text { prompt: fixture.tokens[..7].to_vec(), options };
        let prompt = &text.prompt[..];
        let (expected, context) = text.by_hand(&mut session());
        for fetch_interval in [None, Some(4)] {
            let whole = text.generate(&mut session(), prompt, &|options| options.fetch_interval = fetch_interval);
            assert_eq!(whole.tokens, expected, "{name} on {}", backend.info().name);
            let overflow = whole.overflow.unwrap();
            assert_eq!((overflow.dropped_tokens, overflow.times), (3 * STEP, 3));
            assert_eq!(whole.context(&[prompt, &expected].concat()), context);
        }

        // The text is interrupted anywhere, and resumed in a different session.
        let mut other = session();
        for done in (0..=TOKENS).filter(|done| done % every == 0 || (16..=18).contains(done)) {
            let known = [prompt, &expected[..done]].concat();
            other.rewind(0);
            let rest = text.generate(&mut other, &known, &|options| options.done = expected[..done].to_vec());
            assert_eq!(rest.tokens, expected, "{name}: broken off after {done} tokens");
            let Overflowed { dropped_tokens, times, .. } = rest.overflow.unwrap();
            assert_eq!((dropped_tokens, times), (3 * STEP, 3));
        }

        // The text is saved after one and after two shifts, and loaded here and on another backend.
        for done in [20, 35] {
            let mut here = session();
            let begun = text.generate(&mut here, prompt, &|options| options.max_tokens = Some(done));
            let context = begun.context(&[prompt, &begun.tokens].concat()).into_owned();
            let saved = block_on(here.export(&context, 0, &NativeHost::default())).unwrap();
            assert_eq!((saved.tokens().len(), saved.header().position), (context.len(), context.len() - 1));
            let saved = Snapshot::from_bytes(&saved.to_bytes()).unwrap();
            let plain = load(file(), Some(N_CTX), Rc::new(Cpu::new(Options { fast: false, ..Default::default() })));
            for mut there in [here, session(), Session::new(plain).unwrap()] {
                block_on(there.import(&saved, &NativeHost::default())).unwrap();
                let more = |options: &mut GenerateOptions| options.max_tokens = Some(TOKENS - done);
                let rest = text.generate(&mut there, &context, &more);
                assert_eq!(rest.tokens, expected[done..], "{name}: saved after {done} tokens");
                assert_eq!(rest.prompt_tokens, 1);
            }
        }
    }
}

/// Tests the other policies.
pub fn overflows(name: &str, backend: &Rc<dyn Backend>) {
    let model = load(models(&format!("fixtures/{name}.gguf")), Some(N_CTX), backend.clone());
    let (mut session, host) = (Session::new(model).unwrap(), NativeHost::default());
    let mut generate = |prompt: &[u32], overflow, max_tokens| {
        let options =
            GenerateOptions { overflow, max_tokens, stop_tokens: Some(Vec::new()), ..GenerateOptions::default() };
        block_on(session.generate_after(prompt, &options, None, &host, &mut |_| {}))
    };
    let prompt = [1, 2, 3, 4];
    let whole = generate(&prompt, Overflow::Error, Some(20)).unwrap();
    assert_eq!((whole.tokens.len(), whole.overflow), (20, None));
    let steps = backend.stats().dispatches;
    let refused = generate(&prompt, Overflow::Error, Some(21)).unwrap_err();
    assert_eq!(refused, ModelError::Overflow { prompt: 4, max_tokens: 21, n_ctx: N_CTX });
    generate(&prompt, Overflow::Error, Some(usize::MAX)).unwrap_err();
    assert_eq!(backend.stats().dispatches, steps, "it is refused before anything is computed");
    for (overflow, max_tokens) in [(Overflow::Error, None), (Overflow::Stop, None), (Overflow::Stop, Some(21))] {
        let ended = generate(&prompt, overflow, max_tokens).unwrap();
        assert_eq!((&ended.tokens, ended.finish), (&whole.tokens, Finish::Length));
        assert_eq!(ended.overflow.unwrap().policy, Overflow::Stop);
    }
    let exactly = generate(&prompt, Overflow::Stop, Some(20)).unwrap();
    assert_eq!((exactly.tokens.len(), exactly.overflow), (20, None), "max_tokens ended it, not the context");

    let long: Vec<u32> = (0..60).map(|token| token % 30).collect();
    for overflow in [Overflow::Error, Overflow::Stop] {
        let refused = generate(&long, overflow, None).unwrap_err();
        assert!(matches!(refused, ModelError::ContextFull { tokens: 60, used: 0, n_ctx: N_CTX }), "{refused}");
    }
    let shift = Overflow::Shift { keep: KEEP };
    let shortened = generate(&long, shift, Some(1)).unwrap();
    let left = [&long[..KEEP], &long[KEEP + 4 * STEP..]].concat();
    assert_eq!(shortened.overflow.map(|o| (o.dropped_tokens, o.times)), Some((4 * STEP, 4)));
    assert_eq!(shortened.tokens, generate(&left, Overflow::Stop, Some(1)).unwrap().tokens);
    generate(&prompt, Overflow::Shift { keep: N_CTX - 1 }, None).unwrap_err();
}
