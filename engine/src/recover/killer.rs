//! Test that loses devices at random moments of conversations: while the model loads, in a prompt, in an answer, and
//! between turns. `ANYGPU_KILLS` is the number of conversations; each index is a seed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

use backend_api::Backend;
use backend_api::run::NativeHost;
use model::{ByteSource, BytesSource, GenerateOptions, Sampling};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::failing::{Failing, Fault, How, rung};
use super::{Event, Lost};
use crate::engine::{Engine, EngineOptions};
use crate::error::EngineError;
use crate::ladder::SelectOptions;
use crate::ladder::ladder;
use crate::native::block_on;
use crate::report::Report;

/// Default number of conversations, which tests of a change and those of a night have.
const KILLS: [u64; 2] = [6, 48];
/// Models of families with a KV cache, with recurrent states, and with both.
const MODELS: [&str; 5] = ["llama-gqa-tied", "lfm2-tiny", "mamba-tiny", "gemma3-noswa-softcap", "falcon-h1-tiny"];
const TURNS: usize = 3;
/// Tokens of an answer.
const ANSWER: usize = 8;

/// Plan of a conversation.
struct Talk {
    model: &'static str,
    sampling: Sampling,
    /// Messages of the conversation, turn by turn.
    turns: Vec<Vec<u32>>,
}

impl Talk {
    fn new(random: &mut SmallRng) -> Talk {
        let turn =
            |random: &mut SmallRng| (0..random.random_range(2..12)).map(|_| random.random_range(0..90)).collect();
        let sampled = Sampling::Random { temperature: 1.0, top_k: 0, top_p: 1.0, seed: random.random() };
        Talk {
            model: MODELS[random.random_range(0..MODELS.len())],
            sampling: if random.random() { sampled } else { Sampling::Greedy },
            turns: (0..TURNS).map(|_| turn(random)).collect(),
        }
    }
}

/// Phase of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Load,
    Prefill,
    Decode,
    Idle,
}

/// Result of a conversation.
struct Held {
    /// All of its tokens.
    text: Vec<u32>,
    /// Number of calls to the first backend at the end of each phase.
    calls: Vec<(Phase, usize)>,
    /// Time from each loss until the conversation went on, in milliseconds.
    recovered: Vec<f64>,
}

/// Runs a conversation on a backend whose call `at` and all later ones fail. The backends that take over come from
/// `next`.
fn hold(
    talk: &Talk,
    first: Rc<dyn Backend>,
    at: usize,
    next: &dyn Fn() -> Rc<dyn Backend>,
) -> Result<Held, EngineError> {
    let path = format!("{}/../models/fixtures/{}.gguf", env!("CARGO_MANIFEST_DIR"), talk.model);
    let source = BytesSource(std::fs::read(path).unwrap());
    let options = EngineOptions { n_ctx: Some(96), ..EngineOptions::default() };
    let fault = Rc::new(Fault { at, how: How::Lost, calls: Cell::new(0) });
    let recovered = RefCell::new(Vec::new());
    let open = |inner: Rc<dyn Backend>, fault: &Rc<Fault>| {
        let host = Rc::new(NativeHost::default());
        let failing = Box::new(Failing { inner, fault: fault.clone() });
        let engine = block_on(Engine::with_backend(failing, &source, &options, host, &mut |_| {}))?;
        let session = engine.session()?;
        Ok::<_, EngineError>((engine, session))
    };
    let (mut engine, mut session) = match open(first, &fault) {
        // A loss during loading is returned to the caller, who loads the model again.
        Err(error) if error.lost().is_some() => {
            let begin = Instant::now();
            let opened = open(next(), &Rc::new(Fault { at: usize::MAX, how: How::Lost, calls: Cell::new(0) }))?;
            recovered.borrow_mut().push(begin.elapsed().as_secs_f64() * 1e3);
            opened
        }
        opened => opened?,
    };
    let mut calls = vec![(Phase::Load, fault.calls.get())];
    let mut text = Vec::new();
    for turn in &talk.turns {
        text.extend(turn);
        let generate = GenerateOptions {
            max_tokens: Some(ANSWER),
            sampling: talk.sampling,
            stop_tokens: Some(Vec::new()),
            fetch_interval: Some(2),
            ..GenerateOptions::default()
        };
        let mut prefilled = None;
        let mut on_event = |event: Event<'_>| match event {
            Event::Piece(piece) if piece.token.is_none() => {}
            Event::Piece(_) => drop(prefilled.get_or_insert(fault.calls.get())),
            Event::Recovered(event) => recovered.borrow_mut().push(event.ms),
        };
        let open = async |_: &Lost| {
            let backend = next();
            let report = Report::given(backend.info());
            Ok((backend, report))
        };
        let mut answer = engine.sequence(&text, &generate)?;
        let loaded = (&source as &dyn ByteSource, &options);
        block_on(engine.survive(loaded, &mut session, &mut answer, &mut |_| false, &mut on_event, open))?;
        text.extend(answer.tokens());
        calls.extend([(Phase::Prefill, prefilled.unwrap_or_default()), (Phase::Decode, fault.calls.get())]);
    }
    Ok(Held { text, calls, recovered: recovered.into_inner() })
}

/// Picks a call within a phase of an undisturbed conversation.
fn moment(held: &Held, random: &mut SmallRng) -> (Phase, usize) {
    let part = random.random_range(0..held.calls.len());
    let (phase, end) = held.calls[part];
    let begin = if part == 0 { 0 } else { held.calls[part - 1].1 };
    // A loss while the device is idle is noticed by the next call.
    if phase == Phase::Prefill && random.random_range(0..3) == 0 {
        return (Phase::Idle, begin);
    }
    (phase, random.random_range(begin..end.max(begin + 1)))
}

#[test]
fn conversations_outlive_a_seeded_killer() {
    let kills = std::env::var("ANYGPU_KILLS");
    kill(kills.map_or(KILLS[0], |kills| kills.parse().expect("ANYGPU_KILLS is no number")));
}

#[test]
#[ignore = "takes minutes"]
fn conversations_outlive_a_killer_all_night() {
    kill(KILLS[1]);
}

/// Holds as many conversations as there are seeds below `kills`, each of which loses its device once or more.
fn kill(kills: u64) {
    let ladder = ladder(&SelectOptions::default());
    let rungs: Vec<_> = ladder.iter().map(|rung| rung.name).filter(|name| rung(name).is_some()).collect();
    let mut times: BTreeMap<(Phase, &str), Vec<f64>> = BTreeMap::new();
    for seed in 0..kills {
        let mut random = SmallRng::seed_from_u64(seed);
        let talk = Talk::new(&mut random);
        let name = rungs[random.random_range(0..rungs.len())];
        let other = if random.random() { name } else { rungs[random.random_range(0..rungs.len())] };
        let never = || -> Rc<dyn Backend> { panic!("nothing was lost") };
        let undisturbed = hold(&talk, rung(name).unwrap(), usize::MAX, &never).unwrap();
        let (phase, at) = moment(&undisturbed, &mut random);
        // Sometimes the device that takes over is lost as well.
        let again = (random.random_range(0..4) == 0).then(|| random.random_range(0..200));
        let again = Cell::new(again);
        let next = || -> Rc<dyn Backend> {
            let inner = rung(other).unwrap();
            match again.take() {
                Some(at) if phase != Phase::Load => {
                    let fault = Rc::new(Fault { at, how: How::Lost, calls: Cell::new(0) });
                    Rc::new(Failing { inner, fault })
                }
                _ => inner,
            }
        };
        let here = format!("seed {seed}: {} on {name}, call {at} ({phase:?}), then on {other}", talk.model);
        let held = hold(&talk, rung(name).unwrap(), at, &next).unwrap_or_else(|error| panic!("{here}: {error}"));
        assert_eq!(held.text, undisturbed.text, "{here}");
        assert!(!held.recovered.is_empty(), "{here}: nothing was lost");
        times.entry((phase, other)).or_default().extend(held.recovered);
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let mut all: Vec<f64> = times.values().flatten().copied().collect();
    for ((phase, rung), times) in &mut times {
        println!("lost in {phase:?}, {rung} takes over: {} times, {:.1} ms", times.len(), median(times));
    }
    println!("{kills} conversations went on {} times, after {:.1} ms (median)", all.len(), median(&mut all));
}
