//! Tests of sequences that take turns on a device, and of texts that are saved while they are generated.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use anygpu_model::{
    Batch, GenerateOptions, Generation, Model, Sampling, Saving, Session, Sessions, Snapshot, SnapshotSink,
};
use backend_api::{Backend, Update};

use super::{Fixture, NativeHost, block_on, load, models};

const SAMPLING: Sampling = Sampling::Random { temperature: 1.0, top_k: 0, top_p: 1.0, seed: 3 };
/// Number of tokens in each answer.
const ANSWER: usize = 6;

/// Loads a model of the fixtures; returns it with the tokens of its text.
pub fn fixture(name: &str, backend: &Rc<dyn Backend>) -> (Rc<Model>, Vec<u32>) {
    let manifest: Vec<Fixture> = serde_json::from_slice(&models("fixtures/manifest.json")).unwrap();
    let Fixture { n_ctx, tokens, .. } = manifest.into_iter().find(|f| f.model == format!("{name}.gguf")).unwrap();
    (load(models(&format!("fixtures/{name}.gguf")), Some(n_ctx), backend.clone()), tokens)
}

fn options(max_tokens: usize) -> GenerateOptions {
    GenerateOptions {
        max_tokens: Some(max_tokens),
        sampling: SAMPLING,
        stop_tokens: Some(Vec::new()),
        ..GenerateOptions::default()
    }
}

fn run(session: &mut Session, prompt: &[u32], options: &GenerateOptions) -> Generation {
    let rest = session.resume(prompt);
    block_on(session.generate(rest, options, None, &NativeHost::default(), &mut |_| {})).unwrap()
}

/// Returns the answer to a prompt in an empty session.
pub fn alone(session: &mut Session, prompt: &[u32]) -> Vec<u32> {
    session.rewind(0);
    run(session, prompt, &options(ANSWER)).tokens
}

/// Asks in the named session. Returns the answer, and how many tokens of the prompt were computed.
pub fn ask(sessions: &mut Sessions, name: &str, prompt: &[u32]) -> (Vec<u32>, usize) {
    block_on(sessions.turn_to(name, prompt, &NativeHost::default())).unwrap();
    let Generation { tokens, prompt_tokens, .. } = run_in(sessions, prompt, &options(ANSWER));
    (tokens, prompt_tokens)
}

/// Generates in the current session, and records the text.
fn run_in(sessions: &mut Sessions, prompt: &[u32], options: &GenerateOptions) -> Generation {
    let mut sequence = sessions.session().sequence(prompt, options, None).unwrap();
    block_on(sessions.session_mut().run(&mut sequence, None, &NativeHost::default(), &mut |_| {})).unwrap();
    sessions.note(&sequence);
    sequence.into_generation(&mut |_| {})
}

/// Conversations that take turns compute only their new tokens, and have the texts of conversations alone.
pub fn turns(name: &str, backend: &Rc<dyn Backend>) {
    let (model, tokens) = fixture(name, backend);
    let rewrites = model.recipe().states().unwrap().iter().any(|state| state.update != Update::Append);
    let mut other = Session::new(model.clone()).unwrap();
    let mut alone = |prompt: &[u32]| alone(&mut other, prompt);
    let (system, rest) = tokens.split_at(8);
    let (one, other) = rest.split_at(5);
    let b = [other, &one[..2]].concat();
    assert_ne!(b[0], system[0]);
    let mut sessions = Sessions::new(Session::new(model.clone()).unwrap(), Sessions::BUDGET);
    let mut expect = |name: &str, prompt: &[u32], computed: usize| {
        let (answer, found) = ask(&mut sessions, name, prompt);
        assert_eq!(answer, alone(prompt), "{name}: the answer");
        assert_eq!(found, computed, "{name}: the tokens of the prompt that were computed");
        [prompt, &answer].concat()
    };
    // The last token of an answer is known, but not computed.
    let turn = |text: &[u32]| ([text, one].concat(), 1 + one.len());
    let a = [system, one].concat();
    let mut a = expect("A", &a, a.len());
    let mut b = expect("B", &b, b.len());
    for _ in 0..2 {
        let (prompt, computed) = turn(&a);
        a = expect("A", &prompt, computed);
        let (prompt, computed) = turn(&b);
        b = expect("B", &prompt, computed);
    }
    // These prompts begin like a sequence in host memory, and like one on the device. Recurrent states exist only for a
    // few positions: the end of a waiting sequence, and before the last token of a prompt on the device.
    for last in [&other[..3], &other[1..]] {
        let c = [system, last].concat();
        expect("C", &c, if rewrites { c.len() } else { last.len() });
        expect("D", &[&c[..], &one[..1]].concat(), if rewrites { 2 } else { 1 });
        let (prompt, computed) = turn(&b);
        b = expect("B", &prompt, computed);
    }
    // The tokens of a waiting sequence are those of its last generation, even if no more of it was computed.
    let text = b;
    for seed in 0..3 {
        block_on(sessions.turn_to("B", &text, &NativeHost::default())).unwrap();
        let sampling = Sampling::Random { temperature: 50.0, top_k: 0, top_p: 1.0, seed };
        let options = GenerateOptions { sampling, ..options(1) };
        let Generation { tokens, .. } = run_in(&mut sessions, &text, &options);
        let whole = [&text[..], &tokens].concat();
        block_on(sessions.turn_to("E", &system[..2], &NativeHost::default())).unwrap();
        assert_eq!(sessions.tokens("B"), Some(&whole[..]));
        assert_eq!(sessions.request("B").unwrap().1, sampling);
    }
    sessions.remove("E");
    // A removed sequence leaves nothing behind.
    assert_eq!(sessions.list().iter().map(|info| info.name).collect::<Vec<_>>(), ["B", "D", "C", "A"]);
    assert!(["A", "B", "C", "D"].iter().all(|name| sessions.remove(name)) && !sessions.remove("A"));
    let (answer, computed) = ask(&mut sessions, "A", &a);
    assert_eq!((answer, computed), (alone(&a), a.len()));
    assert!(block_on(sessions.turn_to(&"x".repeat(257), &a, &NativeHost::default())).is_err());
    if backend.info().batch_rows > 1 {
        imported(model, &tokens);
    }
}

/// An imported sequence counts as used: the one that was used before it leaves its slot.
fn imported(model: Rc<Model>, tokens: &[u32]) {
    let host = NativeHost::default();
    let batch = match Batch::new(model.clone(), 2) {
        Ok(batch) => batch,
        // States that are too small to be bound apart.
        Err(why) => return assert!(why.to_string().contains("run one text after another"), "{why}"),
    };
    let mut sessions = Sessions::new(Session::new(model).unwrap(), Sessions::BUDGET);
    sessions.extend_to(batch);
    ask(&mut sessions, "A", &tokens[..5]);
    let saved = block_on(sessions.export("A", &host)).unwrap().unwrap().into_owned();
    ask(&mut sessions, "B", &tokens[2..6]);
    block_on(sessions.import("C", &saved, &host)).unwrap();
    ask(&mut sessions, "D", &tokens[1..6]);
    let on_device = sessions.list().into_iter().filter(|info| info.is_on_device);
    assert_eq!(on_device.map(|info| info.name).collect::<Vec<_>>(), ["D", "C"]);
}

/// Sink that keeps a log of snapshots.
#[derive(Default)]
struct Log {
    position: Cell<usize>,
    records: RefCell<Vec<Vec<u8>>>,
}

impl SnapshotSink for Log {
    fn position(&self) -> usize {
        self.position.get()
    }
    fn is_ready(&self) -> bool {
        !self.records.borrow().len().is_multiple_of(3)
    }
    fn take(&self, snapshot: Snapshot) {
        assert!(snapshot.header().from <= self.position.get());
        self.position.set(snapshot.header().position);
        self.records.borrow_mut().push(snapshot.to_bytes());
    }
}

/// A text that is saved while it is generated can be resumed from each snapshot, with the same result.
pub fn saving(name: &str, backend: &Rc<dyn Backend>) {
    let (model, tokens) = fixture(name, backend);
    let host = NativeHost::default();
    let prompt = &tokens[..7];
    let new = || Session::new(model.clone()).unwrap();
    let undisturbed = run(&mut new(), prompt, &options(12)).tokens;
    for fetch_interval in [1, 3] {
        let log = Rc::new(Log::default());
        let saving = Saving { every_ms: 0.0, sink: log.clone() };
        // The sink is not ready every third time, so that steps are pending in between.
        let asked = GenerateOptions { fetch_interval: Some(fetch_interval), saving: Some(saving), ..options(12) };
        let mut session = new();
        assert_eq!(run(&mut session, prompt, &asked).tokens, undisturbed, "{name}: the text that is saved");
        assert_eq!(session.tokens(), &[prompt, &undisturbed[..11]].concat()[..], "{name}: what was computed");
        let records = log.records.take();
        assert!(records.len() >= 3, "{name}: {} records", records.len());
        let mut last = 0;
        for count in 1..=records.len() {
            let snapshot = Snapshot::from_bytes(&records[..count].concat()).unwrap();
            let request = snapshot.header().request.clone().unwrap();
            assert_eq!((request.prompt, request.max_tokens), (prompt.len(), Some(12)));
            assert_eq!(request.finish.is_some(), count == records.len(), "{name}: record {count}");
            let text = snapshot.tokens();
            assert!(text.len() >= last);
            last = text.len();
            let onward = request.options(text, snapshot.header().sampling.unwrap(), None).unwrap();
            // Half of the tokens are reported again.
            let untold = onward.done.len() / 2;
            let mut sessions = Sessions::new(new(), 0);
            block_on(sessions.import("A", &snapshot, &host)).unwrap();
            block_on(sessions.turn_to("A", text, &host)).unwrap();
            let session = sessions.session_mut();
            let rest = session.resume(text);
            let (mut told, onward) = (Vec::new(), GenerateOptions { untold, ..onward });
            let ended = block_on(session.generate(rest, &onward, None, &host, &mut |piece| told.extend(piece.token)));
            assert_eq!(ended.unwrap().tokens, undisturbed, "{name}: from record {count} on");
            assert_eq!(told, undisturbed[onward.done.len() - untold..], "{name}: told from record {count} on");
            // An imported text can be replayed on another device.
            let (mut moved, text) = (new(), [prompt, &undisturbed].concat());
            let sequence = session.sequence(&text, &options(3), None).unwrap();
            block_on(moved.replay(session, &sequence, &host)).unwrap();
            let (here, there) = (run(session, &text, &options(3)), run(&mut moved, &text, &options(3)));
            assert_eq!(here.tokens, there.tokens, "{name}: computed again from record {count} on");
        }
        assert_eq!(last, prompt.len() + 12);
    }
}
