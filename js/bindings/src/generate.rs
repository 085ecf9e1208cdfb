//! Generating text for JavaScript.

use std::rc::Rc;

use anygpu::{GenerateOptions, Saving, SnapshotSink};
use bindings_common::{WasmCancel, json};
use js_sys::{Function, Promise};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

use crate::engine::{WasmEngine, Work};
use crate::error;
use crate::kept::Keeping;
use crate::request::{Request, answer};

#[wasm_bindgen]
impl WasmEngine {
    /// Generates what follows `tokens`; `on_piece(token, text, overflow, log_prob)` is told of each token as it comes,
    /// and, as JSON, of tokens that make room, and of how likely the token was if the request asks for that. If the
    /// request says how often the text is saved, `on_snapshot(bytes, from, position)` is given what came since the
    /// snapshot before, as `export` gives it, and is to call `kept` when it is done with it. The promise gives JSON. One
    /// generation at a time.
    pub fn generate(
        &self,
        tokens: Vec<u32>,
        options: &str,
        on_piece: Function,
        cancel: &WasmCancel,
        on_snapshot: Option<Function>,
    ) -> Promise {
        let (loaded, request, cancel) = (self.0.clone(), Request::read(options), cancel.flag());
        future_to_promise(async move {
            let mut request = request?;
            let (name, every) = (std::mem::take(&mut request.session), request.save_every);
            let options = request.options(&loaded.engine, loaded.engine.kept(&tokens))?;
            let mut options = GenerateOptions { cancel: Some(cancel), ..options };
            let mut sessions = loaded.take_texts()?;
            options.saving = every.zip(on_snapshot).map(|(every_ms, on_snapshot)| {
                let sink: Rc<dyn SnapshotSink> = Rc::new(Keeping::new(loaded.kept(&name), &tokens, on_snapshot));
                Saving { every_ms, sink }
            });
            let tokenizer = loaded.engine.tokenizer().ok();
            let mut told = |piece: anygpu::Piece<'_>| {
                let token = piece.token.map_or(JsValue::UNDEFINED, JsValue::from);
                let overflow = piece.overflow.and_then(|overflow| json(&overflow).ok());
                let overflow = overflow.map_or(JsValue::UNDEFINED, JsValue::from);
                let log_prob = piece.log_prob.and_then(|told| json(&told.entry(tokenizer)).ok());
                let log_prob = log_prob.map_or(JsValue::UNDEFINED, JsValue::from);
                // A listener that throws is no reason to lose what comes after.
                let _ = on_piece.call4(&JsValue::UNDEFINED, &token, &piece.text.into(), &overflow, &log_prob);
            };
            let generation = loaded.engine.generate_in(&mut sessions, &name, &tokens, &options, &mut told).await;
            loaded.work.replace(Some(Work::Text(sessions)));
            let generation = generation.map_err(|e| error::engine(&e))?;
            Ok(answer(tokens.len(), &generation)?.into())
        })
    }
}
