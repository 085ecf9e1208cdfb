//! Generating text for JavaScript.

use std::cell::RefCell;
use std::rc::Rc;

use anygpu::{ChatTemplate, Engine, EngineError, GenerateOptions, Parts, Piece, Saving, Sequence, Sessions};
use anygpu::{SnapshotSink, Watch};
use bindings_common::{WasmCancel, engine_error as error, json};
use js_sys::{Function, Promise};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

use crate::asked::Asked;
use crate::engine::{Loaded, WasmEngine, Work};
use crate::kept::Keeping;
use crate::request::Request;
use crate::watching;

/// Least time of a turn while others wait.
///
/// *Units*: milliseconds.
const TURN_MS: f64 = 200.0;
/// A turn takes at least so many times as long as it took to bring the text to the device.
const WORTH: f64 = 4.0;

/// A text that is generated in turns.
#[wasm_bindgen]
pub struct WasmText(Rc<Text>);

struct Text {
    loaded: Rc<Loaded>,
    name: String,
    prompt_tokens: usize,
    on_piece: Function,
    /// Missing while the text has its turn, and after an error.
    state: RefCell<Option<State>>,
}

struct State {
    sequence: Sequence,
    answer: Option<Answer>,
    /// Most elements of the matrices that are watched, if steps are.
    watched: Option<usize>,
}

#[wasm_bindgen]
impl WasmEngine {
    /// Begins what follows `tokens`; `on_piece(token, text, overflow, log_prob)` is told of each token as it comes,
    /// and, as JSON, of tokens that make room, of how likely the token was if the request asks for that, and of the
    /// parts of a conversation's answer that are certain with it: then `on_piece(token, text, overflow, log_prob, parts)`. If the
    /// request has steps be watched, what one made comes as `on_piece(undefined, "", undefined, undefined, undefined, step,
    /// values)`. If the request says how often the text is saved, `on_snapshot(bytes, from, position)` is given what came since the
    /// snapshot before, as `export` gives it, and is to call `kept` when it is done with it. If the request has a format,
    /// `on_mask(answer)` gives a promise of the tokens that may come next.
    pub fn begin(
        &self,
        tokens: Vec<u32>,
        options: &str,
        on_piece: Function,
        on_mask: Function,
        cancel: &WasmCancel,
        on_snapshot: Option<Function>,
    ) -> Result<WasmText, JsValue> {
        let (loaded, mut request) = (self.0.clone(), Request::read(options)?);
        let engine = &loaded.engine;
        let (name, every) = (std::mem::take(&mut request.session), request.save_every);
        let chat = request.chat.take().map(|chat| chat.template(engine, request.held_to.is_some())).transpose()?;
        let mut answer = chat.map(|chat| Answer::begin(engine, &chat, &tokens, &request)).transpose()?;
        let (held_to, watched) = (request.held_to.take(), request.watch);
        let options = request.options(engine, engine.kept(&tokens))?;
        let mut options = GenerateOptions { cancel: Some(cancel.flag()), ..options };
        if let Some(answer) = &mut answer {
            options.shown = std::mem::take(&mut answer.marks);
        }
        options.constraint = held_to.map(|source| Asked::constraint(on_mask, source));
        options.saving = every.zip(on_snapshot).map(|(every_ms, on_snapshot)| {
            let sink: Rc<dyn SnapshotSink> = Rc::new(Keeping::new(loaded.kept(&name), &tokens, on_snapshot));
            Saving { every_ms, sink }
        });
        let sequence = engine.sequence(&tokens, &options).map_err(|e| error::engine(&e))?;
        let state = RefCell::new(Some(State { sequence, answer, watched }));
        Ok(WasmText(Rc::new(Text { loaded, name, prompt_tokens: tokens.len(), on_piece, state })))
    }
}

#[wasm_bindgen]
impl WasmText {
    /// Generates until the text ends, or until it had its turn and `waits()` says that others wait for theirs. The promise
    /// gives JSON, or undefined if the text goes on. One turn of a model at a time.
    pub fn turn(&self, waits: Function) -> Promise {
        let text = self.0.clone();
        future_to_promise(async move {
            let state = text.state.borrow_mut().take();
            let mut state =
                state.ok_or_else(|| error::options("the text has ended, or has its turn; begin another"))?;
            let mut sessions = text.loaded.take_texts()?;
            let ended = text.generate(&mut sessions, &mut state, &waits).await;
            text.loaded.work.replace(Some(Work::Text(sessions)));
            if !ended? {
                text.state.replace(Some(state));
                return Ok(JsValue::UNDEFINED);
            }
            let State { sequence, mut answer, .. } = state;
            let generation = sequence.into_generation(&mut |piece| text.tell(&piece, &mut answer));
            if let Some(rest) = answer.as_mut().and_then(Answer::finish) {
                let none = JsValue::UNDEFINED;
                let _ = text.on_piece.call5(&none, &none, &"".into(), &none, &none, &rest.into());
            }
            let thought_tokens = answer.map_or(0, |answer| answer.thought_tokens);
            Ok(crate::request::answer(text.prompt_tokens, &generation, thought_tokens)?.into())
        })
    }
}

impl Text {
    /// Runs one turn; returns whether the text has ended.
    async fn generate(&self, sessions: &mut Sessions, state: &mut State, waits: &Function) -> Result<bool, JsValue> {
        let engine = &self.loaded.engine;
        let State { sequence, answer, watched } = state;
        let watch = watched.map(|most| watching::begin(engine, most)).transpose()?;
        let run = async {
            let start_ms = engine.host().now_ms();
            sessions.turn_to(&self.name, &sequence.context(), engine.host()).await?;
            let least_ms = TURN_MS.max(WORTH * (engine.host().now_ms() - start_ms));
            let mut told = |piece: Piece<'_>| {
                self.tell(&piece, answer);
                while let Some(Ok(Some(step))) = watch.as_ref().map(Watch::step) {
                    watching::tell(&step, &self.on_piece);
                }
            };
            let mut run = engine.begin(sessions.session_mut(), sequence, &mut told).await?;
            loop {
                if !run.advance(&mut told).await? {
                    break;
                }
                // The steps of a turn that is watched would be those of several texts.
                let had_turn = watch.is_none() && engine.host().now_ms() - start_ms >= least_ms;
                if had_turn && run.may_pause() && waits.call0(&JsValue::UNDEFINED).is_ok_and(|waits| waits.is_truthy())
                {
                    run.pause(&mut told).await?;
                    break;
                }
            }
            sessions.note(sequence);
            Ok(sequence.finish().is_some())
        };
        let ended: Result<bool, EngineError> = run.await;
        if let Some(watch) = watch {
            // If the device is lost, the generation says so.
            let rest = watch.end(engine.host()).await.unwrap_or_default();
            rest.iter().for_each(|step| watching::tell(step, &self.on_piece));
        }
        ended.map_err(|e| error::engine(&e))
    }

    /// Tells of a piece.
    fn tell(&self, piece: &Piece<'_>, answer: &mut Option<Answer>) {
        if piece.is_pause() {
            return;
        }
        let tokenizer = self.loaded.engine.tokenizer().ok();
        let token = piece.token.map_or(JsValue::UNDEFINED, JsValue::from);
        let overflow = piece.overflow.and_then(|overflow| json(&overflow).ok());
        let overflow = overflow.map_or(JsValue::UNDEFINED, JsValue::from);
        let log_prob = piece.log_prob.and_then(|told| json(&told.entry(tokenizer)).ok());
        let log_prob = log_prob.map_or(JsValue::UNDEFINED, JsValue::from);
        let parts = answer.as_mut().filter(|_| piece.overflow.is_none()).map(|answer| answer.push(piece));
        let parts = parts.map_or(JsValue::UNDEFINED, JsValue::from);
        // A listener that throws is no reason to lose what comes after.
        let _ = self.on_piece.call5(&JsValue::UNDEFINED, &token, &piece.text.into(), &overflow, &log_prob, &parts);
    }
}

/// The answer of a conversation while it comes.
struct Answer {
    parts: Parts,
    /// Control tokens that tell its parts apart.
    marks: Vec<u32>,
    thought_tokens: usize,
}

impl Answer {
    /// After a prompt, behind which the tokens stand that were generated before.
    fn begin(engine: &Engine, chat: &ChatTemplate, tokens: &[u32], request: &Request) -> Result<Answer, JsValue> {
        let failed = |e| error::engine(&e);
        let prompt = &tokens[..tokens.len().saturating_sub(request.done())];
        let mut parts = engine.answer_parts(chat, prompt).map_err(failed)?;
        // Who asks knows what came of these.
        parts.push(&request.told);
        Ok(Answer { parts, marks: chat.marks(engine.tokenizer().map_err(failed)?), thought_tokens: 0 })
    }

    /// Takes a piece, and gives the parts that are certain with it, as JSON.
    fn push(&mut self, piece: &Piece<'_>) -> String {
        let parts = self.parts.push(piece.text);
        self.thought_tokens += usize::from(piece.token.is_some() && self.parts.is_thinking());
        json(&parts).unwrap_or_default()
    }

    /// Returns the text that was held back, as JSON.
    fn finish(&mut self) -> Option<String> {
        let parts = self.parts.finish();
        if parts.is_empty() { None } else { json(&parts).ok() }
    }
}
