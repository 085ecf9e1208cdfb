//! Tokens that may come next, as whoever is asked says.

use std::rc::Rc;

use anygpu::{AllowFuture, Constraint, ModelError};
use js_sys::{Function, Promise, Uint32Array};
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::JsValue;
use wasm_bindgen_futures::JsFuture;

/// A format that another module knows.
#[derive(Debug)]
pub struct Asked {
    on_mask: Function,
    source: String,
}

impl Asked {
    /// `on_mask(answer)` gives a promise of a `Uint32Array`: a bit for each token, and one word more, which is not 0 if
    /// the answer may end.
    pub fn constraint(on_mask: Function, source: String) -> Rc<dyn Constraint> {
        Rc::new(Asked { on_mask, source })
    }

    async fn masked(&self, answer: &[u32]) -> Result<Uint32Array, JsValue> {
        let promise: Promise = self.on_mask.call1(&JsValue::UNDEFINED, &Uint32Array::from(answer))?.dyn_into()?;
        JsFuture::from(promise).await?.dyn_into()
    }
}

impl Constraint for Asked {
    fn allow<'a>(&'a self, answer: &'a [u32], tokens: &'a mut [u32]) -> AllowFuture<'a> {
        Box::pin(async move {
            let failed = |error: &JsValue| {
                let message = error.dyn_ref().map(|error: &js_sys::Error| String::from(error.message()));
                ModelError::Constraint(message.unwrap_or_else(|| "the format was not made here; ask again".into()))
            };
            let mask = self.masked(answer).await.map_err(|error| failed(&error))?;
            let words = tokens.len() as u32;
            if mask.length() != words + 1 {
                return Err(failed(&JsValue::UNDEFINED));
            }
            mask.subarray(0, words).copy_to(tokens);
            Ok(mask.get_index(words) != 0)
        })
    }

    fn source(&self) -> &str {
        &self.source
    }
}
