//! A request for embeddings, computed one text a turn.

use futures_channel::oneshot::Sender;
use model::Embedder;

use super::super::{Embed, Embedded, HandleError, Place};
use super::block_on;
use crate::engine::Engine;
use crate::error::EngineError;

pub(super) struct Vectors {
    told: Sender<Result<Embedded, HandleError>>,
    texts: Vec<Vec<u32>>,
    dimensions: Option<usize>,
    normalize: bool,
    vectors: Vec<Vec<f32>>,
    _place: Place,
}

impl Vectors {
    /// Accepts a request; if it is refused, sends the error to the caller.
    pub fn admit(
        request: Embed,
        told: Sender<Result<Embedded, HandleError>>,
        place: Place,
        engine: &Engine,
    ) -> Option<Vectors> {
        let Embed { texts, dimensions, normalize, scores } = request;
        let recipe = engine.model().recipe();
        let tokens = |text| engine.prompter().tokens(text, recipe.sizes().n_vocab);
        let pooled = recipe.check_pooled(scores).map_err(EngineError::from);
        match pooled.and_then(|()| texts.iter().map(tokens).collect()) {
            Ok(texts) => Some(Vectors { told, texts, dimensions, normalize, vectors: Vec::new(), _place: place }),
            Err(error) => {
                // The caller may be gone.
                let _ = told.send(Err(error.into()));
                None
            }
        }
    }

    pub fn is_wanted(&self) -> bool {
        !self.told.is_canceled()
    }

    /// Embeds the next text.
    pub fn turn(&mut self, engine: &Engine, embedder: &mut Embedder) -> Result<(), EngineError> {
        let Some(text) = self.texts.get(self.vectors.len()) else { return Ok(()) };
        let mut embedding = block_on(engine.embed(embedder, text))?;
        if let Some(width) = self.dimensions {
            embedding = embedding.shortened(width)?;
        }
        self.vectors.push(if self.normalize { embedding.normalized() } else { embedding }.values);
        Ok(())
    }

    /// Sends the result if all texts are embedded or one failed; otherwise returns the request.
    pub fn told(mut self, turn: Result<(), EngineError>) -> Option<Vectors> {
        let ended = match turn {
            Ok(()) if self.vectors.len() < self.texts.len() => return Some(self),
            Ok(()) => Ok(Embedded {
                vectors: std::mem::take(&mut self.vectors),
                prompt_tokens: self.texts.iter().map(Vec::len).sum(),
            }),
            Err(error) => Err(error.into()),
        };
        // The caller may be gone.
        let _ = self.told.send(ended);
        None
    }
}
