//! Tests with the built-in model, whose draft model is its own first block.

use std::cell::Cell;

use backend_api::run::NativeHost;
use model::{BytesSource, GenerateOptions, Generation, ModelError};

use super::*;
use crate::native::block_on;
use crate::recover::Event;
use crate::recover::failing::{Failing, Fault, How, rung};
use crate::report::Report;
use crate::{Choice, Engine};

const GAB: &[u8] = include_bytes!("../../../models/gab-q4_0.gguf");

/// Makes a draft model whose header has one part replaced by another of the same length.
fn changed(from: &[u8], to: &[u8]) -> DraftModel {
    let mut bytes = GAB.to_vec();
    let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
    bytes[at..][..to.len()].copy_from_slice(to);
    DraftModel(Rc::new(BytesSource(bytes)))
}

fn first_block() -> DraftModel {
    let count = |blocks: u8| [b"gpt2.block_count".as_slice(), &[4, 0, 0, 0, blocks, 0, 0, 0]].concat();
    changed(&count(6), &count(1))
}

fn options(draft: Option<DraftModel>) -> EngineOptions {
    EngineOptions { n_ctx: Some(128), draft, ..EngineOptions::default() }
}

/// Generates on a backend whose call `at` fails; `next` takes over. Also returns the calls before the generation, all
/// calls, and the number of losses.
fn generate(
    draft: Option<DraftModel>,
    [inner, next]: [&Rc<dyn Backend>; 2],
    at: usize,
) -> (Result<Generation, EngineError>, [usize; 2], usize) {
    let (source, options) = (BytesSource(GAB), options(draft));
    let fault = Rc::new(Fault { at, how: How::Lost, calls: Cell::new(0) });
    let failing = Box::new(Failing { inner: inner.clone(), fault: fault.clone() });
    let (mut recovered, begun) = (0, Cell::new(0));
    let all = async || {
        let host = Rc::new(NativeHost::default());
        let mut engine = Engine::with_backend(failing, &source, &options, host, &mut |_| {}).await?;
        let mut session = engine.session()?;
        begun.set(fault.calls.get());
        let text = engine.encode("Once upon a time")?;
        // By default, the number of reads depends on the device's speed.
        let fetch_interval = Some(2);
        let generate = GenerateOptions { max_tokens: Some(24), fetch_interval, ..engine.generate_options() };
        let mut on_event = |event: Event<'_>| recovered += usize::from(matches!(event, Event::Recovered(_)));
        let open = async |_: &_| Ok((next.clone(), Report::given(next.info())));
        let mut sequence = engine.sequence(&text, &generate)?;
        let loaded = (&source as &dyn ByteSource, &options);
        engine.survive(loaded, &mut session, &mut sequence, &mut |_| false, &mut on_event, open).await?;
        Ok(sequence.into_generation(&mut |_| {}))
    };
    let generation = block_on(all());
    (generation, [begun.get(), fault.calls.get()], recovered)
}

#[test]
fn a_text_that_a_small_model_drafts_survives_its_device() {
    // On a software GPU, loading and compiling take a second.
    for (name, losses) in [("cpu", 4), ("webgpu", 2)] {
        let Some((inner, next)) = rung(name).zip(rung(name)) else { continue };
        let both = [&inner, &next];
        let (plain, ..) = generate(None, both, usize::MAX);
        let plain = plain.unwrap();
        let (drafted, [begun, calls], _) = generate(Some(first_block()), both, usize::MAX);
        let drafted = drafted.unwrap();
        assert_eq!((&drafted.tokens, plain.drafted_tokens), (&plain.tokens, 0));
        assert!(drafted.drafted_tokens > 0, "{name}: it drafts");
        // The last calls are left out: how a step is split into parts depends on the device's speed, and so does their
        // number.
        for at in (0..losses).map(|loss| begun + (calls - begun) * loss / (losses + 1)) {
            let (generation, _, recovered) = generate(Some(first_block()), both, at);
            assert_eq!((generation.unwrap().tokens, recovered), (plain.tokens.clone(), 1), "{name}, call {at}");
        }
        let left = [inner.stats().memory, next.stats().memory];
        assert!(left.iter().all(|bytes| *bytes <= 32 << 10), "{name}: {left:?} bytes are left");
    }
}

fn load(options: &EngineOptions) -> Result<Engine, EngineError> {
    let mut options = options.clone();
    options.select.backend = Choice::Cpu;
    block_on(Engine::builder().options(options).load(&BytesSource(GAB), Rc::new(NativeHost::default())))
}

#[test]
fn what_cannot_draft_is_refused() {
    let refused = |options: &EngineOptions| load(options).err().unwrap();
    let why = |draft| match refused(&options(Some(draft))) {
        EngineError::Model(ModelError::Draft(error)) => error,
        other => panic!("{other}"),
    };
    let other = include_bytes!("../../../models/fixtures/by-heart.gguf");
    let error = why(DraftModel(Rc::new(BytesSource(other.as_slice()))));
    assert!(matches!(error, DraftError::Sizes { model: 5256, .. }), "{error}");
    // One token has a different text.
    let error = why(changed("\u{120}dragon".as_bytes(), "\u{120}wagons".as_bytes()));
    assert!(
        matches!(&error, DraftError::Token { draft, model, .. } if draft == "\u{120}wagons" && model == "\u{120}dragon"),
        "{error}"
    );
    let error = why(changed(b"tokenizer.ggml.tokens", b"tokenizer.ggml.absent"));
    assert!(matches!(error, DraftError::NoTokenizer { of: "the model that drafts" }), "{error}");
    // Both models must fit the budget, which is checked before either is loaded.
    let alone = load(&options(None)).unwrap();
    let taken = Model::footprint(alone.model().recipe(), alone.backend()).unwrap();
    let most = |more: u64| {
        let draft = Some(first_block());
        EngineOptions { max_memory: Some(taken.weights + taken.states + more), ..options(draft) }
    };
    assert!(matches!(refused(&most(1 << 20)), EngineError::Model(ModelError::Memory { .. })));
    assert!(load(&most(1 << 30)).unwrap().draft().is_some());
}
