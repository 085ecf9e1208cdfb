//! Sequences that take turns give the same tokens as each one alone, whatever happens to their readers and the device.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use model::{BytesSource, Finish, Overflow, Sampling};

use super::*;
use crate::ladder::{Choice, SelectOptions};
use crate::recover::failing::{Failing, Fault, How, rung};

const GAB: &str = "gab-q4_0";

fn source(model: &str) -> BytesSource<Vec<u8>> {
    let folder = if model == GAB { "models" } else { "models/fixtures" };
    BytesSource(std::fs::read(format!("{}/../{folder}/{model}.gguf", env!("CARGO_MANIFEST_DIR"))).unwrap())
}

fn options(n_ctx: Option<usize>) -> EngineOptions {
    let select = SelectOptions { backend: Choice::Cpu, cpu_threads: 1.try_into().ok(), ..SelectOptions::default() };
    EngineOptions { select, n_ctx, ..EngineOptions::default() }
}

/// Loads a model on a device that is lost at its `lost_at`-th call.
fn opened(model: &str, n_ctx: Option<usize>, lost_at: usize) -> Result<Opened, HandleError> {
    let (source, options, host) = (source(model), options(n_ctx), Rc::new(NativeHost::default()));
    let fault = Rc::new(Fault { at: lost_at, how: How::Lost, calls: Cell::new(0) });
    let backend = Box::new(Failing { inner: rung("cpu").unwrap(), fault });
    let engine = block_on(Engine::with_backend(backend, &source, &options, host, &mut |_| {}))?;
    Ok(Opened { engine, source: Box::new(source), options })
}

fn handle(model: &'static str, limits: Limits) -> Handle {
    block_on(Handle::spawn(move || opened(model, None, usize::MAX), limits)).unwrap().0
}

fn text(text: &str) -> Generate {
    Generate::new(Prompt::Text(text.into()))
}

/// A prompt, and its generation options.
type Asked = (&'static str, fn(&mut GenerateOptions));

/// Requests of three kinds: sampled, greedy, and with a stop string that ends within a token.
fn asked() -> [Asked; 3] {
    [
        ("Once upon a time", |options| {
            options.sampling = Sampling::Random { temperature: 1.0, top_k: 40, top_p: 0.95, seed: 7 };
            options.max_tokens = Some(40);
        }),
        ("One day", |options| options.max_tokens = Some(25)),
        ("Once upon a time", |options| options.stop = vec!["very".into(), "bbles c".into()]),
    ]
}

/// Runs [`asked`] one by one, on an engine of this thread.
fn alone() -> Vec<(Vec<u32>, String, Finish)> {
    let Opened { engine, .. } = opened(GAB, None, usize::MAX).unwrap();
    let alone = |(prompt, configure): Asked| {
        let mut options = engine.generate_options();
        options.max_tokens = Some(500);
        configure(&mut options);
        let mut session = engine.session().unwrap();
        let prompt = engine.encode(prompt).unwrap();
        let ended = block_on(engine.generate(&mut session, &prompt, &options, &mut |_| {})).unwrap();
        (ended.tokens, ended.text, ended.finish)
    };
    asked().map(alone).into()
}

/// Occupies the engine's thread until `ask` has made all its requests.
fn all_at_once<T>(handle: &Handle, ask: impl FnOnce() -> T) -> T {
    let (go, wait) = channel::<()>();
    let first = handle.generate(text("").with(move |options| {
        let _ = wait.recv();
        options.max_tokens = Some(1);
    }));
    drop(first.unwrap());
    let asked = ask();
    drop(go);
    asked
}

/// Returns all events of several answers in the order of their arrival, each with the index of its answer.
fn events(answers: Vec<Answer>) -> Vec<(usize, Told)> {
    let mut answers: Vec<_> = answers.into_iter().map(Some).collect();
    let mut events = Vec::new();
    let mut context = Context::from_waker(Waker::noop());
    while answers.iter().any(Option::is_some) {
        for (at, answer) in answers.iter_mut().enumerate() {
            match answer.as_mut().map(|answer| Pin::new(answer).poll_next(&mut context)) {
                Some(Poll::Ready(Some(told))) => events.push((at, told.unwrap())),
                Some(Poll::Ready(None)) => *answer = None,
                Some(Poll::Pending) | None => thread::yield_now(),
            }
        }
    }
    events
}

/// Returns the outcomes of several answers. Checks that their pieces make up their texts.
fn outcomes(answers: Vec<Answer>) -> Vec<Outcome> {
    let count = answers.len();
    let events = events(answers);
    let of = |at: usize| events.iter().filter(move |(of, _)| *of == at).map(|(_, told)| told);
    let outcome = |at| {
        assert!(matches!(of(at).next(), Some(Told::Begun { .. })));
        let Some(Told::Ended(outcome)) = of(at).next_back() else { panic!("no end") };
        let pieces = of(at)
            .filter_map(|told| if let Told::Piece { token, text, .. } = told { Some((token, text)) } else { None });
        let (tokens, texts): (Vec<_>, Vec<&str>) = pieces.map(|(token, text)| (*token, text.as_str())).unzip();
        assert_eq!(
            (tokens.into_iter().flatten().collect(), texts.concat()),
            (outcome.tokens.clone(), outcome.text.clone())
        );
        (**outcome).clone()
    };
    (0..count).map(outcome).collect()
}

fn of(outcomes: Vec<Outcome>) -> Vec<(Vec<u32>, String, Finish)> {
    outcomes.into_iter().map(|ended| (ended.tokens, ended.text, ended.finish)).collect()
}

#[test]
fn texts_in_slices_are_those_that_each_is_alone() {
    let alone = alone();
    assert!(alone[2].2 == Finish::Stop && alone[2].0.len() > 20, "the string comes in the middle: {alone:?}");
    let cases = [
        (1, 3, None, Some(0), 1),
        (2, 3, None, None, 3),
        (4, 2, None, None, 2),
        (7, 3, Some(0), None, 1),
        (16, 1, None, None, 1),
    ];
    for (slice, begun, session_memory, batch_memory, together) in cases {
        let handle = handle(GAB, Limits { slice, begun, session_memory, batch_memory, ..Limits::default() });
        assert_eq!(handle.facts().together, together, "{slice} {begun}");
        let ask = || asked().map(|(prompt, configure)| handle.generate(text(prompt).with(configure)).unwrap());
        assert_eq!(of(outcomes(all_at_once(&handle, ask).into())), alone, "{slice} {begun}");
    }
}

/// Where memory does not suffice for the whole context of each, short texts advance together all the same. Those that grow out
/// of their slots, or never fit into one, go on in larger ones, and have the tokens that each has alone.
#[test]
fn texts_that_outgrow_their_seats_have_the_same_tokens() {
    // 2,048 tokens take 50 MB: four slots have room for some 500 tokens each, two for 1,100, and one for all.
    let limits = Limits { batch_memory: Some(64_000_000), slice: 40, ..Limits::default() };
    let handle = handle(GAB, limits);
    assert_eq!(handle.facts().together, 4);
    let prompt =
        |len: usize, of: usize| -> Vec<u32> { (0..len).map(|at| ((at * 37 + of * 11) % 900 + 5) as u32).collect() };
    let configure = |options: &mut GenerateOptions, of: usize, most: usize| {
        options.sampling = Sampling::Random { temperature: 0.9, top_k: 20, top_p: 0.95, seed: of as u64 };
        options.max_tokens = Some(most);
        options.stop_tokens = Some(Vec::new());
    };
    let Opened { engine, .. } = opened(GAB, None, usize::MAX).unwrap();
    // At first one outgrows its slot; then one that fits into no slot but the last comes with others; then more are short.
    let rounds: [&[(usize, usize)]; 3] =
        [&[(245, 300), (9, 90), (30, 60)], &[(1_300, 20), (20, 50), (7, 30)], &[(5, 60), (6, 60), (7, 60), (8, 60)]];
    for (round, texts) in rounds.iter().enumerate() {
        let alone: Vec<_> = (0..texts.len())
            .map(|of| {
                let (mut options, mut session) = (engine.generate_options(), engine.session().unwrap());
                configure(&mut options, of, texts[of].1);
                let prompt = prompt(texts[of].0, of);
                block_on(engine.generate(&mut session, &prompt, &options, &mut |_| {})).unwrap().tokens
            })
            .collect();
        let answers = all_at_once(&handle, || {
            let ask = |of: usize| {
                let (len, most) = texts[of];
                let request = Generate::new(Prompt::Tokens(prompt(len, of)));
                handle.generate(request.with(move |options| configure(options, of, most))).unwrap()
            };
            (0..texts.len()).map(ask).collect()
        });
        let together: Vec<_> = outcomes(answers).into_iter().map(|ended| ended.tokens).collect();
        assert_eq!(together, alone, "round {round}");
    }
}

/// Devices are lost while slots are made, while states are copied from one to another, and between.
#[test]
fn lost_devices_are_survived_where_slots_change() {
    let prompt = |len: usize| -> Vec<u32> { (0..len).map(|at| (at * 37 % 900 + 5) as u32).collect() };
    let texts = [(20, 30), (400, 30), (600, 20), (12, 40)];
    let ask = |lost_at: usize| {
        let limits = Limits { batch_memory: Some(64_000_000), slice: 9, ..Limits::default() };
        let spawned = block_on(Handle::spawn(move || opened(GAB, None, lost_at), limits));
        let (handle, _) = spawned.inspect_err(|error| assert!(error.to_string().contains("lost"), "{error}")).ok()?;
        let ask = |(len, most): (usize, usize)| {
            let request = Generate::new(Prompt::Tokens(prompt(len)));
            let few = move |options: &mut GenerateOptions| {
                options.max_tokens = Some(most);
                options.stop_tokens = Some(Vec::new());
            };
            handle.generate(request.with(few)).unwrap()
        };
        let events = events(texts.iter().map(|text| ask(*text)).collect());
        let tokens = |at: usize| -> Vec<u32> {
            let ended = events.iter().rev().find(|(of, _)| *of == at).map(|(_, told)| told);
            if let Some(Told::Ended(ended)) = ended { ended.tokens.clone() } else { panic!("{at}: {ended:?}") }
        };
        let lost = events.iter().filter(|(_, told)| matches!(told, Told::Recovered(_))).count();
        Some(((0..texts.len()).map(tokens).collect::<Vec<_>>(), lost))
    };
    let (alone, lost) = ask(usize::MAX).unwrap();
    assert_eq!((alone.iter().map(Vec::len).collect::<Vec<_>>(), lost), (texts.map(|(_, most)| most).into(), 0));
    let found: Vec<_> = (60..700).step_by(40).filter_map(|at| Some((at, ask(at)?))).collect();
    for (at, (tokens, _)) in &found {
        assert_eq!(*tokens, alone, "lost at {at}");
    }
    assert!(found.len() > 8 && found.iter().any(|(_, (_, lost))| *lost > 0), "{}", found.len());
}

#[test]
fn a_long_answer_lets_others_by() {
    let handle = handle(GAB, Limits { slice: 4, ..Limits::default() });
    let ask = |most| handle.generate(text("One day").with(move |options| options.max_tokens = Some(most))).unwrap();
    let (long, short) = all_at_once(&handle, || (ask(180), ask(8)));
    // The short answer ends after two turns of each; the rest of the long one follows.
    let short = block_on(short.whole()).unwrap();
    assert_eq!(short.tokens.len(), 8);
    let status = handle.status();
    assert_eq!((status.backend, status.waiting), ("cpu", 0));
    let long = block_on(long.whole()).unwrap();
    assert!(long.tokens.len() > 100 && long.tokens.starts_with(&short.tokens));
}

#[test]
fn lost_devices_are_survived_between_turns_and_within() {
    let alone = alone();
    let mut recovered = 0;
    // The first calls load the model; the others are steps, and copies of states between turns.
    for at in (60..500).step_by(55) {
        let open = move || opened(GAB, None, at);
        let limits = Limits { slice: 5, ..Limits::default() };
        let (handle, _) = match block_on(Handle::spawn(open, limits)) {
            Err(HandleError::Engine(error)) if error.lost().is_some() => continue,
            opened => opened.unwrap(),
        };
        let answers: Vec<_> =
            asked().map(|(prompt, configure)| handle.generate(text(prompt).with(configure)).unwrap()).into();
        let events = events(answers);
        let ended = |at| {
            events.iter().find_map(|(of, told)| match told {
                Told::Ended(ended) if *of == at => Some((ended.tokens.clone(), ended.text.clone(), ended.finish)),
                _ => None,
            })
        };
        assert_eq!((0..3).filter_map(ended).collect::<Vec<_>>(), alone, "{at}");
        recovered += events.iter().filter(|(_, told)| matches!(told, Told::Recovered(_))).count();
    }
    assert!(recovered >= 4, "{recovered}");
}

#[test]
fn who_is_gone_makes_room_and_too_many_are_refused() {
    let handle = handle(GAB, Limits { requests: 3, slice: 2, ..Limits::default() });
    let long = |options: &mut GenerateOptions| {
        options.max_tokens = Some(1 << 20);
        options.overflow = Overflow::Shift { keep: 0 };
        options.stop_tokens = Some(Vec::new());
    };
    let answers = all_at_once(&handle, || {
        let answers = [0, 1].map(|_| handle.generate(text("One day").with(long)).unwrap());
        assert!(matches!(handle.generate(text("")), Err(HandleError::Busy { requests: 3 })));
        answers
    });
    drop(answers);
    // Without cancellation they would take hours.
    while handle.requests() > 0 {
        thread::yield_now();
    }
    assert_eq!(block_on(handle.generate(text("One day")).unwrap().whole()).unwrap().finish, Finish::Stop);
}

#[test]
fn a_next_question_finds_what_was_computed() {
    let handle = handle(GAB, Limits::default());
    let (again, elsewhere) = (Message::new("user", "Hello"), Message::new("user", "What is that?"));
    let ask = |messages: &[Message]| {
        let few = |options: &mut GenerateOptions| options.max_tokens = Some(12);
        block_on(handle.generate(Generate::new(Prompt::Chat(messages.to_vec())).with(few)).unwrap().whole()).unwrap()
    };
    let first = ask(std::slice::from_ref(&again));
    assert_eq!(first.cached_tokens, 0);
    ask(std::slice::from_ref(&elsewhere));
    let more = [again.clone(), Message::new("assistant", first.text), Message::new("user", "And then?")];
    let next = ask(&more);
    assert!(next.cached_tokens >= first.prompt_tokens, "{} of {}", next.cached_tokens, first.prompt_tokens);
    // A different conversation with the same beginning.
    assert!(ask(&[again]).cached_tokens + 1 >= first.prompt_tokens);
}

#[test]
fn what_cannot_be_is_told_before_its_turn() {
    let texts = handle(GAB, Limits::default());
    let refused = |request: Generate, why: &str| {
        let error = block_on(texts.generate(request).unwrap().whole()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    refused(Generate::new(Prompt::Tokens(vec![1, 1 << 20])), "not in the vocabulary");
    refused(Generate::new(Prompt::Tokens(Vec::new())), "no tokens");
    refused(text("a").with(|options| options.max_tokens = Some(1 << 20)), "do not fit a context");
    refused(text("a").keeping(3), "only make sense where others go");
    refused(text("a").with(|options| options.fetch_interval = Some(99)), "fetch interval");
    let embed = |at: &Handle, texts: &[&str], dimensions| {
        let texts = texts.iter().map(|text| Prompt::Text((*text).into())).collect();
        block_on(at.embed(Embed { texts, dimensions, normalize: true, scores: false }).unwrap())
    };
    assert!(embed(&texts, &["a"], None).unwrap_err().to_string().contains("gives no embeddings"));
    let vectors = handle("bert-mean", Limits::default());
    let error = block_on(vectors.generate(text("a")).unwrap().whole()).unwrap_err().to_string();
    assert!(error.contains("makes embeddings and no text"), "{error}");
    let both = embed(&vectors, &["the cat sat", "on the mat"], None).unwrap();
    assert_eq!(both.vectors.iter().map(Vec::len).collect::<Vec<_>>(), [24, 24]);
    assert_eq!(embed(&vectors, &["on the mat"], None).unwrap().vectors[0], both.vectors[1]);
    assert_eq!(embed(&vectors, &["on the mat"], Some(5)).unwrap().vectors[0].len(), 5);
    assert!(embed(&vectors, &["on the mat"], Some(0)).unwrap_err().to_string().contains("1 to 24"));
}

#[test]
fn embeddings_survive_a_lost_device() {
    let undisturbed = handle("bert-mean", Limits::default());
    let texts: Vec<_> = ["the cat sat", "on the mat", "and"].map(|text| Prompt::Text(text.into())).into();
    let ask = |handle: &Handle| {
        let request = Embed { texts: texts.clone(), dimensions: None, normalize: false, scores: false };
        block_on(handle.embed(request).unwrap())
    };
    let expected = ask(&undisturbed).unwrap();
    let mut survived = 0;
    // The device is lost at each call in turn, until there are fewer calls than that.
    for at in 0..10_000 {
        let loads = Arc::new(AtomicUsize::new(0));
        let counted = loads.clone();
        let open = move || {
            let is_first = counted.fetch_add(1, Ordering::Relaxed) == 0;
            opened("bert-mean", None, if is_first { at } else { usize::MAX })
        };
        // A device that is lost during loading makes `spawn` fail.
        let Ok((handle, _)) = block_on(Handle::spawn(open, Limits::default())) else { continue };
        assert_eq!(ask(&handle).unwrap(), expected, "{at}");
        if loads.load(Ordering::Relaxed) == 1 {
            break;
        }
        survived += 1;
    }
    assert!(survived >= 3, "{survived}");
}

/// A device that batches sequences gives the same tokens as each one alone, also if the device is lost in the middle.
#[test]
fn texts_advance_together() {
    let Some(backend) = rung("webgpu") else { return };
    assert!(backend.info().batch_rows >= 4);
    drop(backend);
    let open = |lost_at: usize| {
        let (source, options, host) = (source(GAB), options(Some(64)), Rc::new(NativeHost::default()));
        let fault = Rc::new(Fault { at: lost_at, how: How::Lost, calls: Cell::new(0) });
        let backend = Box::new(Failing { inner: rung("webgpu").unwrap(), fault: fault.clone() });
        let engine = block_on(Engine::with_backend(backend, &source, &options, host, &mut |_| {})).unwrap();
        (Opened { engine, source: Box::new(source), options }, fault.calls.get())
    };
    let (Opened { engine, .. }, loading) = open(usize::MAX);
    let asked = ["Once upon a time", "One day", "Lily", "The dog"];
    let configure = |options: &mut GenerateOptions, i: usize| {
        options.max_tokens = Some(10 + i);
        if i > 0 {
            options.sampling = Sampling::Random { temperature: 1.0, top_k: 40, top_p: 0.95, seed: i as u64 };
        }
    };
    let alone: Vec<_> = (0..asked.len())
        .map(|i| {
            let mut options = engine.generate_options();
            configure(&mut options, i);
            let (mut session, prompt) = (engine.session().unwrap(), engine.encode(asked[i]).unwrap());
            block_on(engine.generate(&mut session, &prompt, &options, &mut |_| {})).unwrap().tokens
        })
        .collect();
    drop(engine);
    // The batch's states and programs, four prompts, and some of their steps come before the loss.
    for lost_at in [usize::MAX, loading + 60] {
        let open = move || Ok::<_, HandleError>(open(lost_at).0);
        let (handle, _) = block_on(Handle::spawn(open, Limits::default())).unwrap();
        let answers = all_at_once(&handle, || {
            let ask = |i: usize| handle.generate(text(asked[i]).with(move |options| configure(options, i))).unwrap();
            (0..asked.len()).map(ask).collect()
        });
        let events = events(answers);
        let tokens = |at: usize| -> Vec<u32> {
            let of_it = events.iter().filter(|(answer, _)| *answer == at);
            of_it.filter_map(|(_, told)| if let Told::Piece { token, .. } = told { *token } else { None }).collect()
        };
        let all: Vec<_> = (0..asked.len()).map(tokens).collect();
        assert_eq!(all, alone, "lost at {lost_at}");
        let recovered = events.iter().filter(|(_, told)| matches!(told, Told::Recovered(_))).count();
        assert_eq!(recovered > 0, lost_at < usize::MAX, "{recovered} recoveries");
        // All have begun before the first one ends, and each one's end is sent at once.
        let first_end = events.iter().position(|(_, told)| matches!(told, Told::Ended(_))).unwrap();
        let begun =
            |at: usize| events[..first_end].iter().any(|(of, told)| *of == at && matches!(told, Told::Piece { .. }));
        assert!(lost_at < usize::MAX || (0..asked.len()).all(begun), "they did not advance together");
        let goes_on = events[first_end..].iter().any(|(_, told)| matches!(told, Told::Piece { .. }));
        assert!(lost_at < usize::MAX || goes_on, "an end was told late");
    }
}

#[test]
fn the_thread_ends_with_the_last_handle() {
    let (handle, thread) = block_on(Handle::spawn(|| opened(GAB, None, usize::MAX), Limits::default())).unwrap();
    let answer = handle.clone().generate(text("One day")).unwrap();
    drop(handle);
    assert_eq!(block_on(answer.whole()).unwrap().finish, Finish::Stop);
    thread.join().unwrap();
    let missing = block_on(Handle::open("no-such.gguf", || options(None), Limits::default()));
    assert!(missing.err().unwrap().to_string().contains("cannot open the model"));
}
