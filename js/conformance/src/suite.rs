//! The conformance suite in this browser.

use anygpu::web::WebHost;
use anygpu_conformance::expect::Expectations;
use anygpu_conformance::report::BackendReport;
use anygpu_conformance::run::{Outcome, check};
use anygpu_conformance::suite;
use anygpu_conformance::variants::{self, Kind, Variant, WebGlShape, WebGlVariant, WebGpuVariant};
use backend_api::{Backend, Error, cases};
use backend_webgl::Layout;
use backend_webgl::testing::Hooks;
use backend_webgpu::{Tuning, WebGpu};
use bindings_common::{WasmCancel, error, json};
use js_sys::Function;
use model::Host;
use reference_cpu::{Cpu, Instructions};
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

/// Cases to run, and their options.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    /// The variant's name.
    backend: String,
    /// This operator only.
    op: Option<String>,
    /// Runs the first of every this many cases of each operator.
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
        Kind::Cpu(name) => {
            let instructions = name.map(Instructions::named).transpose()?;
            Box::new(Cpu::new(reference_cpu::Options { instructions, ..Default::default() }))
        }
        Kind::WebGpu(WebGpuVariant { max_binding, optional_features, products, as_software }) => {
            let tuning = as_software.map(|yes| match yes {
                true => Tuning::software(),
                false if !optional_features => Tuning::large(),
                false => Tuning::default(),
            });
            let options = backend_webgpu::Options { max_binding, optional_features, products, tuning };
            Box::new(WebGpu::open(options).await?)
        }
        Kind::WebGl(WebGlVariant { layout, bare, max_texture_size, max_targets, shape }) => {
            let tuning = match shape {
                WebGlShape::Usual => None,
                // As natively: small products are made as large ones are.
                WebGlShape::Gpu => Some(backend_webgl::Tuning { joined_from: 0, ..Default::default() }),
                WebGlShape::NoBlend => Some(backend_webgl::Tuning { blend: 0, ..Default::default() }),
                WebGlShape::ShortLines => {
                    Some(backend_webgl::Tuning { line_shift: 4, ..backend_webgl::Tuning::software("") })
                }
            };
            let layout = Layout::named(layout).ok_or_else(|| Error::Invalid(format!("there is no layout {layout}")))?;
            let options = backend_webgl::Options { layout, max_texture_size, tuning };
            Box::new(backend_webgl::testing::open(options, Hooks { max_targets, bare, patch: None })?)
        }
    })
}

/// Runs the suite on one variant. `on_case` is told of each case as JSON; the result is JSON.
#[wasm_bindgen]
pub async fn conformance(options: String, on_case: Function, cancel: WasmCancel) -> Result<String, JsValue> {
    let cancelled = cancel.flag();
    let options: Options = serde_json::from_str(&options).map_err(error::options)?;
    let variant = variants::named(&options.backend).map_err(error::options)?;
    if let Some(op) = options.op.as_deref().filter(|op| !cases::names().any(|name| name == *op)) {
        let known = cases::names().collect::<Vec<_>>().join(", ");
        return Err(error::options(format!("there is no operator or form {op}; there are {known}")));
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
        if cancelled.get() {
            break;
        }
        let outcome = check(&*backend, &reference, case, host).await;
        let (ok, nmse, message) = match &outcome {
            Outcome::Passed { nmse, .. } => (true, Some(*nmse), None),
            Outcome::Failed(why) => (false, None, Some(why.as_str())),
        };
        let told = Told { index, total: cases.len(), op: case.op, case: &case.name, ok, nmse, message };
        on_case.call1(&JsValue::UNDEFINED, &json(&told)?.into())?;
        let expected = options.expectations.reason(variant.name, &adapter, case.op, &case.name);
        report.add_case(case, outcome, expected);
        run += 1;
        host.turn().await;
    }
    let (passed, failed) = report.counts();
    json(&Summary { passed, failed, not_run: all - run, report })
}
