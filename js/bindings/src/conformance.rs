//! The conformance suite in this browser.

use crate::engine::WasmCancel;
use crate::error;
use ::conformance::expect::Expectations;
use ::conformance::report::BackendReport;
use ::conformance::run::{Outcome, check};
use ::conformance::suite;
use ::conformance::variants::{self, Kind, Variant, WebGpuVariant};
use ::engine::web::WebHost;
use backend_api::{Backend, Error, Op};
use backend_webgl::{Layout, WebGl};
use backend_webgpu::{Tuning, WebGpu};
use js_sys::Function;
use model::Host;
use reference_cpu::Cpu;
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

/// What to run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    /// The variant's name.
    backend: String,
    /// This operator only.
    op: Option<String>,
    /// Of each operator only the first of this many cases, the next but so many, and so on.
    every: Option<usize>,
    #[serde(default)]
    expectations: Expectations,
}

/// One case, as the page is told of it.
#[derive(Serialize)]
struct Told<'a> {
    index: usize,
    total: usize,
    op: &'a str,
    case: &'a str,
    ok: bool,
    nmse: Option<f64>,
    message: Option<&'a str>,
}

/// The result of all.
#[derive(Serialize)]
struct Summary {
    passed: usize,
    failed: usize,
    /// Cases left out by `every`, and those after a cancellation.
    not_run: usize,
    #[serde(flatten)]
    report: BackendReport,
}

async fn open(variant: &Variant) -> Result<Box<dyn Backend>, Error> {
    Ok(match variant.kind {
        Kind::Reference => Box::new(Cpu::new(reference_cpu::Options { fast: false, ..Default::default() })),
        Kind::Cpu => Box::new(Cpu::new(Default::default())),
        Kind::WebGpu(WebGpuVariant { max_binding, optional_features, products, as_software }) => {
            let tuning = as_software.map(|yes| if yes { Tuning::software() } else { Tuning::default() });
            let options =
                backend_webgpu::Options { max_binding, optional_features, products, tuning, ..Default::default() };
            Box::new(WebGpu::open(options).await?)
        }
        Kind::WebGl { packed, max_texture_size, max_targets, as_gpu } => {
            let tuning = as_gpu.then(backend_webgl::Tuning::default);
            let layout = if packed { Layout::Packed } else { Layout::R32f };
            Box::new(WebGl::open(backend_webgl::Options {
                layout,
                max_texture_size,
                max_targets,
                tuning,
                ..Default::default()
            })?)
        }
    })
}

/// Runs the suite on one variant. `on_case` is told of each case as JSON; the result is JSON.
#[wasm_bindgen]
pub async fn conformance(options: String, on_case: Function, cancel: WasmCancel) -> Result<String, JsValue> {
    let options: Options = serde_json::from_str(&options).map_err(error::options)?;
    let variant = variants::named(&options.backend).map_err(error::options)?;
    if let Some(op) = options.op.as_deref().filter(|op| !Op::NAMES.contains(op)) {
        return Err(error::options(format!("there is no operator {op}; there are {}", Op::NAMES.join(", "))));
    }
    let host = WebHost::new()?;
    let host: &dyn Host = &host;
    let backend = open(variant).await.map_err(|e| error::backend(&e))?;
    let reference = Cpu::new(reference_cpu::Options { fast: false, ..Default::default() });
    let adapter = backend.info().adapter.clone();
    let mut report = BackendReport::new(variant.name, &adapter);
    let mut cases = suite::cases(options.op.as_deref());
    let all = cases.len();
    let (mut op, mut of_op) = ("", 0);
    cases.retain(|case| {
        of_op = if case.op == op { of_op + 1 } else { 0 };
        op = case.op;
        of_op % options.every.unwrap_or(1).max(1) == 0
    });
    let mut run = 0;
    for (index, case) in cases.iter().enumerate() {
        if cancel.is_set() {
            break;
        }
        let outcome = check(&*backend, &reference, case, host).await;
        let (ok, nmse, message) = match &outcome {
            Outcome::Passed { nmse, .. } => (true, Some(*nmse), None),
            Outcome::Failed(why) => (false, None, Some(why.as_str())),
        };
        let told = Told { index, total: cases.len(), op: case.op, case: &case.name, ok, nmse, message };
        on_case.call1(&JsValue::UNDEFINED, &json(&told)?.into())?;
        report.add(
            case.op,
            &case.name,
            outcome,
            options.expectations.reason(variant.name, &adapter, case.op, &case.name),
        );
        run += 1;
        host.turn().await;
    }
    let (passed, failed) = report.counts();
    json(&Summary { passed, failed, not_run: all - run, report })
}

/// Plain data always becomes JSON.
pub fn json(value: &impl Serialize) -> Result<String, JsValue> {
    serde_json::to_string(value).map_err(|e| error::options(format!("no JSON: {e}; report this as a bug")))
}
