//! Formats of answers for JavaScript: which tokens may come next. The engine's module asks by way of the page, so that a
//! page without formats loads nothing of this.
#![cfg(target_arch = "wasm32")]
#![forbid(unsafe_code)]

use std::rc::Rc;

use anygpu_constrain::{Format, Grammar, Vocabulary};
pub use bindings_common::WasmCancel;
use bindings_common::error::options;
use js_sys::{Promise, Uint32Array};
use model::Constraint;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

/// Begins to tell of panics.
#[wasm_bindgen(start)]
pub fn start() {
    bindings_common::show_panics();
}

/// The tokens of a model.
#[wasm_bindgen]
pub struct WasmVocabulary {
    vocabulary: Vocabulary,
    tokens: usize,
}

#[wasm_bindgen]
impl WasmVocabulary {
    /// Makes a vocabulary from the bytes of all tokens, one behind the other.
    #[wasm_bindgen(constructor)]
    pub fn new(words: &[u8], lengths: &[u32]) -> Result<WasmVocabulary, JsValue> {
        let mut rest = words;
        let word = |length: &u32| {
            let (word, more) = rest.split_at_checked(*length as usize)?;
            rest = more;
            Some(word.to_vec())
        };
        let words: Option<Vec<_>> = lengths.iter().map(word).collect();
        let words = words.ok_or_else(|| options("the words of the vocabulary are not as long as is said"))?;
        let tokens = words.len();
        Ok(WasmVocabulary { vocabulary: Vocabulary::of_words(words).map_err(options)?, tokens })
    }

    /// The grammar of a format, as `Format::from_source` reads it.
    pub fn grammar(&self, format: &str) -> Result<WasmGrammar, JsValue> {
        let format = Format::from_source(format).map_err(options)?;
        let grammar: Grammar = self.vocabulary.grammar(&format).map_err(options)?;
        Ok(WasmGrammar { constraint: grammar.constraint(), tokens: self.tokens })
    }
}

/// Constraint of one answer.
#[wasm_bindgen]
pub struct WasmGrammar {
    constraint: Rc<dyn Constraint>,
    tokens: usize,
}

#[wasm_bindgen]
impl WasmGrammar {
    /// Which tokens may come after those of an answer. The promise gives a `Uint32Array`: a bit for each token, and one word
    /// more, which is not 0 if the answer may end.
    pub fn allow(&self, answer: Vec<u32>) -> Promise {
        let (constraint, words) = (self.constraint.clone(), self.tokens.div_ceil(32));
        future_to_promise(async move {
            let mut tokens = vec![0; words];
            let may_end = constraint.allow(&answer, &mut tokens).await.map_err(options)?;
            tokens.push(may_end.into());
            Ok(Uint32Array::from(&tokens[..]).into())
        })
    }
}
