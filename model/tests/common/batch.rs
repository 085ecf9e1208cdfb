//! Batches of sequences.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use super::*;
use anygpu_model::{Adjust, AllowFuture, Batch, Constraint, Generation, ModelError, Run, Sampling, Sequence, Sessions};
use backend_api::Pace;
use backend_api::run::{Host, Local, join};

/// Size of the context, which is not a multiple of the alignment.
const N_CTX: usize = 90;
/// New tokens of each sequence.
const TOKENS: usize = 24;
/// New tokens of sequences beside which prompts are computed.
const OTHERS: usize = 180;

/// A clock that stands still, so that the parts of prompts do not depend on the machine's speed: each is the shortest one.
struct Still(NativeHost);

impl Host for Still {
    fn wake_later(&self, waker: &Waker) {
        self.0.wake_later(waker);
    }

    fn now_ms(&self) -> f64 {
        0.0
    }
}

fn model(name: &str, kv_cache: &str, n_ctx: usize, backend: &Rc<dyn Backend>) -> Rc<Model> {
    let bytes = models(&format!("fixtures/{name}.gguf"));
    let recipe = Recipe::new(&Gguf::from_bytes(&bytes).unwrap(), Some(n_ctx)).unwrap();
    let recipe = recipe.with_kv_cache(kv_cache.parse().unwrap());
    let host = NativeHost::default();
    Rc::new(block_on(Model::load(&BytesSource(bytes), recipe, backend.clone(), &host, &mut |_, _| {})).unwrap())
}

/// `count` sequences of different lengths, sampled and greedy, have the same tokens and states as each one alone, bit for bit,
/// and most steps are batched. A backend that does not batch refuses.
pub fn batch(name: &str, kv_cache: &str, count: usize, backend: &Rc<dyn Backend>) {
    let (model, host) = (model(name, kv_cache, N_CTX, backend), NativeHost::default());
    if backend.info().batch_rows == 1 {
        let why = Batch::new(model, 2).err().unwrap().to_string();
        return assert!(why.contains("cannot advance together"), "{why}");
    }
    let n_vocab = model.recipe().sizes().n_vocab as u32;
    let prompt =
        |i: usize| -> Vec<u32> { (0..7 + 9 * (i % 5)).map(|at| (at * (3 + i) + i) as u32 % n_vocab).collect() };
    let prompts: Vec<Vec<u32>> = (0..count).map(prompt).collect();
    let options = |i: usize| GenerateOptions {
        // They end one after another.
        max_tokens: Some(TOKENS - 3 * (i % 5)),
        sampling: match i {
            0 | 3 => Sampling::Greedy,
            _ => Sampling::Random { temperature: 0.9, top_k: 4 + i as u32, top_p: 0.95, seed: 11 + i as u64 },
        },
        stop_tokens: Some(Vec::new()),
        draft_max: Some(0),
        fetch_interval: (i == 2).then_some(1),
        ..Default::default()
    };
    let answer = async |session: &mut Session, i: usize| {
        let (prompt, options) = (&prompts[i], options(i));
        let generation = session.generate_after(prompt, &options, None, &host, &mut |_| {}).await.unwrap();
        let text = [&prompt[..], &generation.tokens].concat();
        (session.export(&text, 0, &host).await.unwrap(), generation.tokens)
    };
    let alone: Vec<_> = (0..count).map(|i| block_on(answer(&mut Session::new(model.clone()).unwrap(), i))).collect();

    let mut batch = Batch::new(model.clone(), count).unwrap();
    let answer = &answer;
    // The second round uses compiled programs, and caches that had other sequences in them.
    for round in 0..2 {
        let before = batch.steps();
        let each = batch.sessions_mut().iter_mut().enumerate();
        let all = each.map(|(i, session)| -> Local<'_, _> { Box::pin(answer(session, (i + round) % count)) }).collect();
        let together = block_on(join(all));
        for (i, found) in together.iter().enumerate() {
            let (states, tokens) = &alone[(i + round) % count];
            assert_eq!(&found.1, tokens, "{name} with {kv_cache}: other tokens of text {i}");
            assert!(&found.0 == states, "{name} with {kv_cache}: other states of text {i}");
        }
        let (steps, rows) = batch.steps();
        let (steps, rows) = (steps - before.0, rows - before.1);
        // The first token of each sequence comes with its prompt. A step may have only the sampling sequences, or only
        // the others.
        let all: usize = (0..count).map(|i| TOKENS - 3 * (i % 5) - 1).sum();
        assert!(rows as usize > all / 2 && rows as usize <= all + count * 8, "{rows} rows of {all}");
        assert!(3 * steps < 2 * rows, "{steps} steps for {rows} rows");
    }
    let most = backend.info().batch_rows;
    let why = Batch::new(model.clone(), most + 1).err().unwrap().to_string();
    assert!(why.contains(&format!("2 to {most}")), "{why}");
    drop(batch);
    // The memory of read buffers stays allocated.
    let memory = backend.stats().memory;
    drop(Batch::new(model.clone(), count).unwrap());
    assert_eq!(backend.stats().memory, memory, "memory of a batch");
}

/// A constraint: the ids of an answer are, one after another, 0, 1 and 2 modulo 3.
#[derive(Debug)]
struct Counted;

impl Constraint for Counted {
    fn allow<'a>(&'a self, answer: &'a [u32], tokens: &'a mut [u32]) -> AllowFuture<'a> {
        Box::pin(async move {
            let may = (0..32 * tokens.len()).filter(|id| id % 3 == answer.len() % 3);
            may.for_each(|id| tokens[id / 32] |= 1 << (id % 32));
            Ok(false)
        })
    }

    fn source(&self) -> &str {
        "counted"
    }
}

/// Whatever requests ask for, they advance in the steps of the others, and have the tokens, log probabilities and states that
/// each has alone, bit for bit.
pub fn requests_together(name: &str, backend: &Rc<dyn Backend>) {
    if backend.info().batch_rows == 1 {
        return;
    }
    let (model, host) = (model(name, "f32", N_CTX, backend), NativeHost::default());
    let (n_vocab, count, new) = (model.recipe().sizes().n_vocab as u32, 8, 14);
    let prompts: Vec<Vec<u32>> =
        (0..count).map(|i| (0..5 + 6 * (i % 3)).map(|at| (at * (3 + i) + i) as u32 % n_vocab).collect()).collect();
    let options = |i: usize| {
        let (repetition_penalty, presence_penalty, min_p) = (1.0 + 0.2 * (i % 3) as f32, 0.5, 0.02 * i as f32);
        let adjust = Adjust {
            repetition_penalty,
            presence_penalty,
            min_p,
            logit_bias: vec![(i as u32, 2.0)],
            ..Adjust::default()
        };
        GenerateOptions {
            max_tokens: Some(new),
            sampling: match i % 2 {
                0 => Sampling::Greedy,
                _ => Sampling::Random { temperature: 1.1, top_k: 0, top_p: 0.95, seed: i as u64 },
            },
            adjust: if i < 4 { adjust } else { Adjust::default() },
            constraint: matches!(i, 2 | 3 | 5).then(|| -> Rc<dyn Constraint> { Rc::new(Counted) }),
            log_probs: matches!(i, 3 | 6 | 7).then_some(3),
            stop_tokens: Some(Vec::new()),
            draft_max: Some(0),
            ..Default::default()
        }
    };
    let answer = async |session: &mut Session, i: usize| {
        let (prompt, options) = (&prompts[i], options(i));
        let found = session.generate_after(prompt, &options, None, &host, &mut |_| {}).await.unwrap();
        let text = [&prompt[..], &found.tokens].concat();
        (found.tokens, found.log_probs, session.export(&text, 0, &host).await.unwrap())
    };
    let alone: Vec<_> = (0..count).map(|i| block_on(answer(&mut Session::new(model.clone()).unwrap(), i))).collect();
    for i in [2, 3, 5] {
        let counts = alone[i].0.iter().enumerate().all(|(at, id)| *id as usize % 3 == at % 3);
        assert!(counts, "{name}: text {i} is {:?}", alone[i].0);
    }
    let mut batch = Batch::new(model.clone(), count).unwrap();
    let answer = &answer;
    // In the second round, each slot has rows of another request.
    for round in 0..2 {
        let before = batch.steps();
        let each = batch.sessions_mut().iter_mut().enumerate();
        let all = each.map(|(i, session)| -> Local<'_, _> { Box::pin(answer(session, (i + round) % count)) }).collect();
        for (i, found) in block_on(join(all)).iter().enumerate() {
            let i = (i + round) % count;
            assert_eq!((&found.0, &found.1), (&alone[i].0, &alone[i].1), "{name}: text {i}");
            assert!(found.2 == alone[i].2, "{name}: other states of text {i}");
        }
        // The first token of each comes with its prompt, whose last row may be one of a common step, and a text that is alone
        // for a while has steps of its own.
        let (rows, all) = ((batch.steps().1 - before.1) as usize, count * (new - 1));
        assert!(rows > all / 2 && rows <= all + count, "{name}: {rows} rows of {all}");
    }
}

/// Drafts are verified in the steps of the others. Texts and states are those without drafts, bit for bit.
pub fn drafts_beside(name: &str, backend: &Rc<dyn Backend>) {
    let info = backend.info();
    if info.batch_rows == 1 {
        return;
    }
    let (model, host) = (model(name, "f32", 256, backend), NativeHost::default());
    let n_vocab = model.recipe().sizes().n_vocab as u32;
    let prompts = [0, 5, 11].map(|from| (0..40).map(|at| (at % 9 * 7 + 3 + from) % n_vocab).collect::<Vec<u32>>());
    let len = if info.verify_after > 0 { 190 } else { 86 };
    let answer = async |session: &mut Session, i: usize, draft_max: Option<usize>| {
        let options = GenerateOptions {
            max_tokens: Some(len - i),
            sampling: match i {
                0 => Sampling::Greedy,
                _ => Sampling::Random { temperature: 0.6, top_k: 4, top_p: 0.9, seed: 11 },
            },
            stop_tokens: Some(Vec::new()),
            draft_max,
            ..Default::default()
        };
        let found = session.generate_after(&prompts[i], &options, None, &host, &mut |_| {}).await.unwrap();
        let text = [&prompts[i][..], &found.tokens].concat();
        (session.export(&text, 0, &host).await.unwrap(), found)
    };
    let answer = &answer;
    let alone: Vec<_> =
        (0..3).map(|i| block_on(answer(&mut Session::new(model.clone()).unwrap(), i, Some(0)))).collect();
    let mut batch = Batch::new(model.clone(), 3).unwrap();
    let each = batch.sessions_mut().iter_mut().enumerate();
    let all = each.map(|(i, session)| -> Local<'_, _> { Box::pin(answer(session, i, None)) }).collect();
    let mut accepted = 0;
    for (i, ((states, found), (expected, plain))) in block_on(join(all)).iter().zip(&alone).enumerate() {
        assert_eq!(found.tokens, plain.tokens, "{name}: text {i}");
        assert!(states == expected, "{name}: other states of text {i}");
        accepted += found.accepted_tokens;
    }
    let (steps, rows) = batch.steps();
    // Drafts have rows of the common steps, and save steps there.
    println!("{name}: {accepted} tokens of drafts, {steps} steps of {rows} rows");
    assert_eq!(accepted > 0, !info.synchronous, "{name}");
}

/// Long prompts are computed in parts in turn, and after each part the others, one or two, have a step. A short prompt does not
/// wait for the end of a long one. Nobody's text changes.
pub fn prompt_beside(name: &str, backend: &Rc<dyn Backend>) {
    if backend.info().batch_rows > 1 {
        for others in 1..3 {
            prompt_beside_others(name, others, [60, 60], backend);
        }
        let [long, short] = prompt_beside_others(name, 1, [60, 12], backend);
        assert!(3 * short < 2 * long, "{name}: {short} and {long} tokens of another before the first ones");
    }
}

/// Returns how many tokens another text had before the first one after each of two prompts.
fn prompt_beside_others(name: &str, others: usize, lens: [u32; 2], backend: &Rc<dyn Backend>) -> [usize; 2] {
    let all = 2 + others;
    let (model, host) = (model(name, "f32", 4 + OTHERS, backend), Still(NativeHost::default()));
    let n_vocab = model.recipe().sizes().n_vocab as u32;
    let prompts: Vec<Vec<u32>> = (0..all as u32)
        .map(|i| (0..lens.get(i as usize).copied().unwrap_or(3)).map(|at| (7 * at + 3 * i + 1) % n_vocab).collect())
        .collect();
    let options = |i: usize| GenerateOptions {
        // The others go on for longer than both prompts take.
        max_tokens: Some(if i < 2 { 4 } else { OTHERS }),
        stop_tokens: Some(Vec::new()),
        draft_max: Some(0),
        fetch_interval: Some(1),
        ..Default::default()
    };
    let told: Vec<Cell<usize>> = (0..all).map(|_| Cell::new(0)).collect();
    let beside = [Cell::new(0), Cell::new(0)];
    let answer = async |session: &mut Session, i: usize| {
        // In a batch, prompts come when the others are under way: at a second token they take part in steps.
        poll_fn(|context| {
            context.waker().wake_by_ref();
            if i < 2 && told[2..].iter().any(|told| told.get() < 2) { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        // So slow that a step of a prompt comes in many parts, but not in so many as the others have tokens.
        let synchronous = session.model().backend().info().synchronous;
        session.set_pace(Pace::fixed(2e5, synchronous));
        session.set_prompt_rows(16);
        let on_piece = &mut |piece: anygpu_model::Piece<'_>| {
            told[i].set(told[i].get() + usize::from(piece.token.is_some()));
            if i < 2 && told[i].get() == 1 && piece.token.is_some() {
                beside[i].set(told[2..].iter().map(Cell::get).min().unwrap());
            }
        };
        session.generate_after(&prompts[i], &options(i), None, &host, on_piece).await.unwrap().tokens
    };
    // The others first, for which the prompts wait.
    let mut alone: Vec<_> =
        (2..all).chain(0..2).map(|i| block_on(answer(&mut Session::new(model.clone()).unwrap(), i))).collect();
    alone.rotate_left(others);
    told.iter().for_each(|told| told.set(0));
    let mut batch = Batch::new(model.clone(), all).unwrap();
    let answer = &answer;
    let each = batch.sessions_mut().iter_mut().enumerate();
    let together = block_on(join(each.map(|(i, session)| -> Local<'_, _> { Box::pin(answer(session, i)) }).collect()));
    assert_eq!(together, alone, "{name} beside {others}");
    let [first, second] = beside.map(|tokens| tokens.get());
    let both = format!("{name}: {first} and {second} tokens of the others before the first ones");
    assert!(first.min(second) >= 8 && first.max(second) < OTHERS, "{both}");
    [first, second]
}

/// Tokens of a prompt that are computed one by one, and the last one of a text that was paused, are rows of the steps of
/// another text. Nobody's text or states change.
pub fn prompt_rows_beside(name: &str, backend: &Rc<dyn Backend>) {
    if backend.info().batch_rows == 1 {
        return;
    }
    let (model, host) = (model(name, "f32", 128, backend), NativeHost::default());
    let n_vocab = model.recipe().sizes().n_vocab as u32;
    let prompts = [6, 3].map(|len| (0..len).map(|at| (7 * at + len) % n_vocab).collect::<Vec<u32>>());
    let random = Sampling::Random { temperature: 0.8, top_k: 7, top_p: 0.95, seed: 3 };
    let options = |i: usize| GenerateOptions {
        max_tokens: Some([5, 60][i]),
        sampling: [random, Sampling::Greedy][i],
        adjust: Adjust { repetition_penalty: [1.3, 1.0][i], ..Adjust::default() },
        stop_tokens: Some(Vec::new()),
        draft_max: Some(0),
        fetch_interval: Some(1),
        ..Default::default()
    };
    let sizes = model.recipe().sizes();
    let told = Cell::new(0);
    let answer = async |session: &mut Session, i: usize| {
        poll_fn(|context| {
            context.waker().wake_by_ref();
            if i == 0 && told.get() < 2 { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        session.set_short_prompt(16);
        let mut sequence = Sequence::new(&prompts[i], &options(i), None, sizes).unwrap();
        let on_piece = &mut |piece: anygpu_model::Piece<'_>| {
            told.set(told.get() + usize::from(i == 1 && piece.token.is_some()));
        };
        let mut run = Run::begin(session, &mut sequence, None, &host, on_piece).await.unwrap();
        while run.advance(on_piece).await.unwrap() {
            // The first text pauses once, after two of its five tokens.
            if i == 0 && run.sequence().tokens().len() == 2 && !run.is_in_prompt() {
                run.pause(on_piece).await.unwrap();
                run = Run::begin(session, &mut sequence, None, &host, on_piece).await.unwrap();
            }
        }
        let tokens = sequence.tokens().to_vec();
        (session.export(&sequence.context(), 0, &host).await.unwrap(), tokens)
    };
    // The one that the other waits for comes first.
    let mut alone: Vec<_> =
        [1, 0].into_iter().map(|i| block_on(answer(&mut Session::new(model.clone()).unwrap(), i))).collect();
    alone.reverse();
    told.set(0);
    let mut batch = Batch::new(model.clone(), 2).unwrap();
    let answer = &answer;
    let each = batch.sessions_mut().iter_mut().enumerate();
    let together = block_on(join(each.map(|(i, session)| -> Local<'_, _> { Box::pin(answer(session, i)) }).collect()));
    for (i, (found, expected)) in together.iter().zip(&alone).enumerate() {
        assert_eq!(found.1, expected.1, "{name}: text {i}");
        assert!(found.0 == expected.0, "{name}: other states of text {i}");
    }
    // All rows of the first text: its prompt's, and those of its tokens but the last. Whenever it leaves, a step that the other
    // has begun to wait for is taken by the other alone.
    let (rows, all) = (batch.steps().1, 2 * (6 + 4));
    assert!(rows >= all && rows <= all + 2, "{name}: {rows} rows of {all}");
}

/// A text that needs more room than its session in a batch has stops there, and goes on in another one with the tokens and
/// states that it has alone. What does not fit at all is refused, in either way.
pub fn room(name: &str, backend: &Rc<dyn Backend>) {
    if backend.info().batch_rows == 1 {
        return;
    }
    let (model, host) = (model(name, "f32", 256, backend), NativeHost::default());
    let (n_vocab, sizes) = (model.recipe().sizes().n_vocab as u32, model.recipe().sizes());
    let prompts = [40, 50].map(|len| (0..len).map(|at| (5 * at + len) % n_vocab).collect::<Vec<u32>>());
    let options = GenerateOptions {
        max_tokens: Some(30),
        stop_tokens: Some(Vec::new()),
        draft_max: Some(0),
        ..GenerateOptions::default()
    };
    let mut batch = Batch::with_room(model.clone(), 2, 60).unwrap();
    let room = batch.sessions_mut()[0].room();
    assert!((60..70).contains(&room), "{name}: {room}");
    let answer = async |session: &mut Session, i: usize| {
        let mut sequence = Sequence::new(&prompts[i], &options, None, sizes).unwrap();
        let mut run = Run::begin(session, &mut sequence, None, &host, &mut |_| {}).await.unwrap();
        while run.advance(&mut |_| {}).await.unwrap() {
            if run.is_out_of_room() {
                run.pause(&mut |_| {}).await.unwrap();
                break;
            }
        }
        let context = sequence.context().into_owned();
        (session.export(&context, 0, &host).await.unwrap(), sequence)
    };
    let answer = &answer;
    let each = batch.sessions_mut().iter_mut().enumerate();
    let together = block_on(join(each.map(|(i, session)| -> Local<'_, _> { Box::pin(answer(session, i)) }).collect()));
    for (i, (stopped, mut sequence)) in together.into_iter().enumerate() {
        let (alone, whole) = block_on(answer(&mut Session::new(model.clone()).unwrap(), i));
        assert_eq!((sequence.finish(), sequence.context().len()), (None, room), "{name}");
        let mut session = Session::new(model.clone()).unwrap();
        block_on(session.import(&stopped, &host)).unwrap();
        block_on(session.run(&mut sequence, None, &host, &mut |_| {})).unwrap();
        assert_eq!(sequence.tokens(), whole.tokens(), "{name}: text {i}");
        let found = block_on(session.export(&sequence.context(), 0, &host)).unwrap();
        assert!(found == alone, "{name}: other states of text {i}");
    }
    let full = |ended: Result<Generation, ModelError>| match ended.unwrap_err() {
        ModelError::ContextFull { n_ctx, .. } => assert_eq!(n_ctx, room, "{name}"),
        other => panic!("{name}: {other}"),
    };
    let session = &mut batch.sessions_mut()[0];
    let long: Vec<u32> = (0..70).collect();
    full(block_on(session.generate_after(&long, &options, None, &host, &mut |_| {})));
    full(block_on(session.generate_after(&prompts[0], &options, None, &host, &mut |_| {})));
    let error = block_on(session.import(&block_on(answer(&mut Session::new(model.clone()).unwrap(), 0)).0, &host));
    assert!(matches!(error, Err(ModelError::ContextFull { n_ctx, .. }) if n_ctx == room), "{name}: {error:?}");
}

/// Programs that are compiled ahead are those that sequences need when they advance together: none is compiled then.
pub fn compiled_ahead(name: &str, backend: &Rc<dyn Backend>) {
    let info = backend.info();
    if info.batch_rows == 1 {
        return;
    }
    let (model, host) = (model(name, "f32", N_CTX, backend), Still(NativeHost::default()));
    let options = GenerateOptions {
        max_tokens: Some(TOKENS),
        sampling: Sampling::Random { temperature: 0.9, top_k: 40, top_p: 0.95, seed: 3 },
        stop_tokens: Some(Vec::new()),
        draft_max: Some(0),
        ..Default::default()
    };
    // Objects that the device makes while four texts advance.
    let made = |is_ahead: bool| {
        let mut sessions = Sessions::new(Session::new(model.clone()).unwrap(), Sessions::BUDGET);
        assert!(!sessions.compile_ahead().unwrap(), "{name}: a single slot");
        sessions.extend_to(Batch::new(model.clone(), 4).unwrap());
        if is_ahead {
            let programs = (0..9).take_while(|_| sessions.compile_ahead().unwrap()).count();
            // Rows of 2 and 4, and of 3 where each takes its time.
            assert_eq!(programs, if info.synchronous { 3 } else { 2 }, "{name}");
        }
        let before = backend.stats();
        let answer = async |session: &mut Session| {
            session.generate_after(&[1, 2, 3], &options, None, &host, &mut |_| {}).await.unwrap();
        };
        let each = sessions.sessions_mut();
        block_on(join(each.map(|session| -> Local<'_, _> { Box::pin(answer(session)) }).collect()));
        backend.stats().since(&before).objects
    };
    // Kernels stay compiled: the second run makes only what each set of sequences has of its own.
    let [_, late, ahead] = [false, false, true].map(made);
    assert!(info.synchronous || ahead < late, "{name}: {ahead} objects, and {late} without");
}
