//! Results of the kernels of a step, for JavaScript.

use anygpu::{Engine, KernelInfo, Made, Watch, WatchedMatrix, WatchedStep};
use bindings_common::{engine_error as error, json};
use js_sys::{Array, Float32Array, Function};
use serde::Serialize;
use wasm_bindgen::prelude::JsValue;

/// A step; the values come beside it.
#[derive(Serialize)]
struct Told<'a> {
    position: usize,
    matrices: Vec<Matrix<'a>>,
}

#[derive(Serialize)]
struct Matrix<'a> {
    kernel: &'a str,
    subject: &'a str,
    name: &'a str,
    rows: usize,
    cols: usize,
}

/// Watches what is of a token or of a head, and has so many elements at most.
pub fn begin(engine: &Engine, most: usize) -> Result<Watch, JsValue> {
    let is_wanted = move |info: &KernelInfo, made: &Made| {
        let is_small = made.rows.saturating_mul(made.cols) <= most;
        is_small && (made.rows == 1 || info.name.starts_with("attention_scores"))
    };
    Watch::new(engine, is_wanted).map_err(|e| error::engine(&e))
}

/// Tells of a step.
pub fn tell(WatchedStep { position, matrices }: &WatchedStep, on_piece: &Function) {
    let told = matrices.iter().map(|WatchedMatrix { kernel, subject, made: Made { name, rows, cols }, .. }| Matrix {
        kernel,
        subject,
        name,
        rows: *rows,
        cols: *cols,
    });
    let Ok(step) = json(&Told { position: *position, matrices: told.collect() }) else { return };
    let values: Vec<f32> = matrices.iter().flat_map(|matrix| &matrix.values).copied().collect();
    let none = JsValue::UNDEFINED;
    let values = Float32Array::from(&values[..]).into();
    let args: Array = [none.clone(), "".into(), none.clone(), none.clone(), none, step.into(), values].iter().collect();
    // A listener that throws is no reason to lose what comes after.
    let _ = on_piece.apply(&JsValue::UNDEFINED, &args);
}
