//! Draft models, for speculative decoding.

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;

use std::fmt::{Debug, Formatter, Result as Formatted};
use std::rc::Rc;

use backend_api::Backend;
use model::{ByteSource, DraftError, Gguf, Host, Model, Recipe, Session, Tokenizer};

use crate::engine::{EngineOptions, Progress};
use crate::error::EngineError;

/// Source of a draft model ([`EngineOptions::draft`]). It is read again whenever the main model is loaded again.
#[derive(Clone)]
pub struct DraftModel(pub Rc<dyn ByteSource>);

impl Debug for DraftModel {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        write!(f, "DraftModel({} bytes)", self.0.len())
    }
}

/// A draft model whose header was read and found to suit the main model.
pub(crate) struct Drafting<'o> {
    source: &'o dyn ByteSource,
    recipe: Recipe,
}

impl<'o> Drafting<'o> {
    /// Reads the header of the draft model in `options`; nothing if there is none or the backend cannot verify drafts.
    ///
    /// *Errors*: a malformed or unsupported file; another vocabulary; both models together exceed the memory limit.
    pub async fn read(
        options: &'o EngineOptions,
        recipe: &Recipe,
        tokenizer: Option<&Tokenizer>,
        backend: &dyn Backend,
    ) -> Result<Option<Drafting<'o>>, EngineError> {
        let Some(DraftModel(source)) = &options.draft else { return Ok(None) };
        if backend.info().verify_rows < 2 || options.stage.is_some() {
            return Ok(None);
        }
        let gguf = Gguf::read(&**source).await?;
        let draft = Tokenizer::from_metadata(&gguf.metadata).ok();
        let lacks = |of| EngineError::from(DraftError::NoTokenizer { of });
        let draft = draft.ok_or_else(|| lacks("the model that drafts"))?;
        DraftError::check(&draft, tokenizer.ok_or_else(|| lacks("the model"))?)?;
        // It may have been trained for a shorter context; positions beyond that are not drafted.
        let n_ctx = Recipe::new(&gguf, None)?.sizes().n_ctx_train.min(recipe.sizes().n_ctx);
        let small = Recipe::new(&gguf, Some(n_ctx))?.with_kv_cache(options.kv_cache);
        let left = match options.max_memory {
            Some(most) => {
                let taken = Model::footprint(recipe, backend)?;
                Some(most.saturating_sub(taken.weights.saturating_add(taken.states)))
            }
            None => None,
        };
        small.check_memory(left)?;
        Ok(Some(Drafting { source: &**source, recipe: small }))
    }

    /// Loads it beside the main model.
    ///
    /// *Errors*: as [`Model::load`].
    pub async fn load(
        self,
        backend: &Rc<dyn Backend>,
        host: &dyn Host,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Rc<Model>, EngineError> {
        let mut on_weights = |done, total| progress(Progress::Weights { done, total });
        let model = Model::load(self.source, self.recipe, backend.clone(), host, &mut on_weights).await?;
        Ok(Rc::new(model))
    }
}

/// Attaches a draft model to a session.
///
/// *Errors*: memory for its KV cache, or the device was lost; states that cannot be rewound.
pub(crate) fn attach(session: &mut Session, draft: &Rc<Model>, small: Session) -> Result<(), EngineError> {
    let cost = draft.step_cost()? / session.model().step_cost()?.max(1.0);
    Ok(session.set_draft(small, cost)?)
}
