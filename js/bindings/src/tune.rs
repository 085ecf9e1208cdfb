//! Tuning in this browser.

use anygpu::bench::ModelOptions;
use anygpu::web::WebHost;
use anygpu::{TuneReport, Winners};
use bindings_common::load::LoadOptions;
use bindings_common::source::{JsSource, Source};
use bindings_common::{engine_error as error, json};
use js_sys::Function;
use serde::Serialize;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

/// Few tokens: many runs are compared.
const OPTIONS: ModelOptions = ModelOptions { depth: 0, prefill: 64, decode: 32, repeat: 3, fetch_interval: None };

#[derive(Serialize)]
struct Told {
    /// As a person reads it.
    text: String,
    #[serde(flatten)]
    report: TuneReport,
    /// Tuning results to keep from now on.
    tuned: Winners,
}

/// Tries the tunables of the backend that is chosen for a model. `on_trial(what)` is told what is being measured.
#[wasm_bindgen]
pub async fn tune(source: JsSource, options: String, on_trial: Function) -> Result<String, JsValue> {
    let options = LoadOptions::read(&options)?;
    let (mut tuned, engine, host) = (options.tuned(), options.parsed()?, WebHost::new()?);
    // A listener that throws is no reason to stop.
    let mut trial = |what: &str| drop(on_trial.call1(&JsValue::UNDEFINED, &what.into()));
    let report = anygpu::tune("model", &Source(source), &engine, &OPTIONS, &host, &mut |_| (), &mut trial).await;
    let report = report.map_err(|e| error::engine(&e))?;
    tuned.add(report.winner.clone());
    json(&Told { text: report.to_string(), report, tuned })
}
