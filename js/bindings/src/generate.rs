//! Generating text for JavaScript.

use std::cell::Cell;
use std::rc::Rc;

use anygpu::{GenerateOptions, Generation, Sampling, SavedRequest, Saving, SnapshotSink, TopK};
use bindings_common::{WasmCancel, json};
use js_sys::{Function, Promise};
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

use crate::engine::{Counters, WasmEngine, Work};
use crate::error;
use crate::kept::Keeping;

/// How to generate.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    max_tokens: Option<usize>,
    temperature: Option<f32>,
    top_k: Option<u32>,
    top_p: Option<f32>,
    seed: Option<u64>,
    #[serde(default)]
    stop: Vec<String>,
    #[serde(default)]
    ignore_eos: bool,
    fetch_interval: Option<usize>,
    /// Tokens of an answer that was broken off: the prompt ends with them.
    #[serde(default)]
    done: Vec<u32>,
    /// How many of the last of them were never told.
    #[serde(default)]
    untold: usize,
    /// The name of the text that it belongs to.
    #[serde(default)]
    session: String,
    /// How often the text is saved, in milliseconds, if it is.
    save_every: Option<f64>,
}

impl Request {
    /// What asks for the same again as a generation that was saved.
    pub fn saved(request: &SavedRequest, sampling: Sampling) -> Request {
        let mut all = Request {
            max_tokens: Some(usize::try_from(request.max_tokens).unwrap_or(usize::MAX)),
            stop: request.stop.clone(),
            ignore_eos: request.stop_tokens.is_some(),
            ..Request::default()
        };
        if let Sampling::Random { temperature, top_k, top_p, seed } = sampling {
            let given = (Some(temperature), Some(top_k), Some(top_p), Some(seed));
            (all.temperature, all.top_k, all.top_p, all.seed) = given;
        }
        all
    }

    fn options(self, defaults: GenerateOptions, cancel: Rc<Cell<bool>>) -> GenerateOptions {
        let sampling = match self.temperature {
            None | Some(0.0) => Sampling::Greedy,
            Some(temperature) => Sampling::Random {
                temperature,
                // More than the device can keep means as many as it can.
                top_k: self.top_k.filter(|k| *k as usize <= TopK::MAX).unwrap_or(0),
                top_p: self.top_p.unwrap_or(1.0),
                seed: self.seed.unwrap_or(0),
            },
        };
        GenerateOptions {
            max_tokens: self.max_tokens.unwrap_or(defaults.max_tokens),
            sampling,
            stop_tokens: self.ignore_eos.then(Vec::new),
            stop: self.stop,
            fetch_interval: self.fetch_interval.or(defaults.fetch_interval),
            cancel: Some(cancel),
            done: self.done,
            untold: self.untold,
            saving: None,
        }
    }
}

/// What a generation gave.
#[derive(Serialize)]
struct Answer<'a> {
    prompt_tokens: usize,
    cached_tokens: usize,
    tokens: &'a [u32],
    text: &'a str,
    finish: &'static str,
    prefill_ms: f64,
    decode_ms_per_token: f64,
    steady_steps: usize,
    steady: Counters,
}

#[wasm_bindgen]
impl WasmEngine {
    /// Generates what follows `tokens`; `on_piece(token, text)` is told of each token as it comes. If the request says
    /// how often the text is saved, `on_snapshot(bytes, from, position)` is given what came since the snapshot before,
    /// as `export` gives it, and is to call `kept` when it is done with it. The promise gives JSON. One generation at a
    /// time.
    pub fn generate(
        &self,
        tokens: Vec<u32>,
        options: &str,
        on_piece: Function,
        cancel: &WasmCancel,
        on_snapshot: Option<Function>,
    ) -> Promise {
        let (loaded, request, cancel) = (self.0.clone(), serde_json::from_str(options), cancel.flag());
        future_to_promise(async move {
            let mut request: Request = request.map_err(error::options)?;
            let mut sessions = loaded.take_texts()?;
            let (name, every) = (std::mem::take(&mut request.session), request.save_every);
            let mut options = request.options(loaded.engine.generate_options(), cancel);
            options.saving = every.zip(on_snapshot).map(|(every_ms, on_snapshot)| {
                let sink: Rc<dyn SnapshotSink> = Rc::new(Keeping::new(loaded.kept(&name), &tokens, on_snapshot));
                Saving { every_ms, sink }
            });
            let mut told = |piece: anygpu::Piece<'_>| {
                let token = piece.token.map_or(JsValue::UNDEFINED, JsValue::from);
                // A listener that throws is no reason to lose what comes after.
                let _ = on_piece.call2(&JsValue::UNDEFINED, &token, &piece.text.into());
            };
            let generation = loaded.engine.generate_in(&mut sessions, &name, &tokens, &options, &mut told).await;
            loaded.work.replace(Some(Work::Text(sessions)));
            let generation = generation.map_err(|e| error::engine(&e))?;
            Ok(answer(tokens.len(), &generation)?.into())
        })
    }
}

fn answer(prompt_tokens: usize, generation: &Generation) -> Result<String, JsValue> {
    json(&Answer {
        prompt_tokens,
        cached_tokens: prompt_tokens - generation.prompt_tokens,
        tokens: &generation.tokens,
        text: &generation.text,
        finish: generation.finish.name(),
        prefill_ms: generation.prefill_ms,
        decode_ms_per_token: generation.decode_ms_per_token,
        steady_steps: generation.steady_steps,
        steady: generation.steady.into(),
    })
}
