//! Generating text for JavaScript.

use std::rc::Rc;

use anygpu::{ChatTemplate, Engine, GenerateOptions, Parts, Piece, Saving, SnapshotSink, Watch};
use bindings_common::{WasmCancel, engine_error as error, json};
use js_sys::{Function, Promise};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

use crate::asked::Asked;
use crate::engine::{WasmEngine, Work};
use crate::kept::Keeping;
use crate::request::Request;
use crate::watching;

#[wasm_bindgen]
impl WasmEngine {
    /// Generates what follows `tokens`; `on_piece(token, text, overflow, log_prob)` is told of each token as it comes,
    /// and, as JSON, of tokens that make room, of how likely the token was if the request asks for that, and of the
    /// parts of a conversation's answer that are certain with it: then `on_piece(token, text, overflow, log_prob, parts)`. If the
    /// request has steps be watched, what one made comes as `on_piece(undefined, "", undefined, undefined, undefined, step,
    /// values)`. If the request says how often the text is saved, `on_snapshot(bytes, from, position)` is given what came since the
    /// snapshot before, as `export` gives it, and is to call `kept` when it is done with it. If the request has a format,
    /// `on_mask(answer)` gives a promise of the tokens that may come next. The promise gives JSON. One generation at a time.
    pub fn generate(
        &self,
        tokens: Vec<u32>,
        options: &str,
        on_piece: Function,
        on_mask: Function,
        cancel: &WasmCancel,
        on_snapshot: Option<Function>,
    ) -> Promise {
        let (loaded, request, cancel) = (self.0.clone(), Request::read(options), cancel.flag());
        future_to_promise(async move {
            let mut request = request?;
            let (name, every) = (std::mem::take(&mut request.session), request.save_every);
            let chat =
                request.chat.take().map(|chat| chat.template(&loaded.engine, request.held_to.is_some())).transpose()?;
            let mut answer = chat.map(|chat| Answer::begin(&loaded.engine, &chat, &tokens, &request)).transpose()?;
            let held_to = request.held_to.take();
            let watched = request.watch;
            let options = request.options(&loaded.engine, loaded.engine.kept(&tokens))?;
            let mut options = GenerateOptions { cancel: Some(cancel), ..options };
            if let Some(answer) = &mut answer {
                options.shown = std::mem::take(&mut answer.marks);
            }
            options.constraint = held_to.map(|source| Asked::constraint(on_mask, source));
            let mut sessions = loaded.take_texts()?;
            // Only now: one that is under way has its own.
            let watch = match watched.map(|most| watching::begin(&loaded.engine, most)).transpose() {
                Ok(watch) => watch,
                Err(error) => {
                    loaded.work.replace(Some(Work::Text(sessions)));
                    return Err(error);
                }
            };
            options.saving = every.zip(on_snapshot).map(|(every_ms, on_snapshot)| {
                let sink: Rc<dyn SnapshotSink> = Rc::new(Keeping::new(loaded.kept(&name), &tokens, on_snapshot));
                Saving { every_ms, sink }
            });
            let tokenizer = loaded.engine.tokenizer().ok();
            let mut told = |piece: Piece<'_>| {
                if piece.is_pause() {
                    return;
                }
                let token = piece.token.map_or(JsValue::UNDEFINED, JsValue::from);
                let overflow = piece.overflow.and_then(|overflow| json(&overflow).ok());
                let overflow = overflow.map_or(JsValue::UNDEFINED, JsValue::from);
                let log_prob = piece.log_prob.and_then(|told| json(&told.entry(tokenizer)).ok());
                let log_prob = log_prob.map_or(JsValue::UNDEFINED, JsValue::from);
                let parts = answer.as_mut().filter(|_| piece.overflow.is_none()).map(|answer| answer.push(&piece));
                let parts = parts.map_or(JsValue::UNDEFINED, JsValue::from);
                // A listener that throws is no reason to lose what comes after.
                let _ = on_piece.call5(&JsValue::UNDEFINED, &token, &piece.text.into(), &overflow, &log_prob, &parts);
                while let Some(Ok(Some(step))) = watch.as_ref().map(Watch::step) {
                    watching::tell(&step, &on_piece);
                }
            };
            let generation = loaded.engine.generate_in(&mut sessions, &name, &tokens, &options, &mut told).await;
            loaded.work.replace(Some(Work::Text(sessions)));
            if let Some(watch) = watch {
                // If the device is lost, the generation says so.
                let rest = watch.end(loaded.engine.host()).await.unwrap_or_default();
                rest.iter().for_each(|step| watching::tell(step, &on_piece));
            }
            let generation = generation.map_err(|e| error::engine(&e))?;
            if let Some(rest) = answer.as_mut().and_then(Answer::finish) {
                let none = JsValue::UNDEFINED;
                let _ = on_piece.call5(&none, &none, &"".into(), &none, &none, &rest.into());
            }
            let thought_tokens = answer.map_or(0, |answer| answer.thought_tokens);
            Ok(crate::request::answer(tokens.len(), &generation, thought_tokens)?.into())
        })
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
