//! Measuring in this browser.

use anygpu::EngineError;
use anygpu::bench::{self, ModelOptions, QUEUED};
use anygpu::web::WebHost;
use bindings_common::load::LoadOptions;
use bindings_common::source::{JsSource, Source};
use bindings_common::{engine_error as error, json};
use js_sys::Function;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::rc::Rc;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

/// Measurements to make, and their options.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    what: What,
    engine: LoadOptions,
    /// The model's name in the report.
    #[serde(default)]
    model: String,
    depth: Option<usize>,
    prefill: Option<usize>,
    decode: Option<usize>,
    repeat: Option<usize>,
    fetch_interval: Option<usize>,
    queued: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Model,
    Ablate,
    Load,
    Ops,
}

/// A report, also as a person reads it.
#[derive(Serialize)]
struct Told<T> {
    text: String,
    #[serde(flatten)]
    report: T,
}

fn told(report: Result<impl Serialize + Display, EngineError>) -> Result<String, JsValue> {
    let report = report.map_err(|e| error::engine(&e))?;
    json(&Told { text: report.to_string(), report })
}

/// Measures a model from a source, or, without one, operators. `on_progress(what)` is told what is done now; the result is
/// the JSON of the report, with its text.
#[wasm_bindgen]
pub async fn bench(source: Option<JsSource>, options: String, on_progress: Function) -> Result<String, JsValue> {
    let options: Options = serde_json::from_str(&options).map_err(error::options)?;
    let engine = options.engine.parsed()?;
    let host = Rc::new(WebHost::new()?);
    // A listener that throws is no reason to stop.
    let mut progress = |what: &str| drop(on_progress.call1(&JsValue::UNDEFINED, &what.into()));
    let usual = ModelOptions::default();
    let model = ModelOptions {
        depth: options.depth.unwrap_or(usual.depth),
        prefill: options.prefill.unwrap_or(usual.prefill),
        decode: options.decode.unwrap_or(usual.decode),
        repeat: options.repeat.unwrap_or(usual.repeat),
        fetch_interval: options.fetch_interval,
    };
    let source = source.map(Source);
    let source =
        source.as_ref().ok_or_else(|| error::options("a model is to be measured, but there is none; give its source"));
    let (name, loading) = (&options.model, &mut |_| ());
    match options.what {
        What::Ops => {
            let queued = options.queued.unwrap_or(QUEUED);
            told(bench::ops(&engine.select, queued, &*host, &mut progress).await)
        }
        What::Model => told(bench::run(name, source?, &engine, &model, host, loading, &mut progress).await),
        What::Load => told(bench::load(name, source?, &engine, host, loading, &mut progress).await),
        What::Ablate => told(bench::ablate(name, source?, &engine, &model, &*host, loading, &mut progress).await),
    }
}
