//! A request for embeddings, computed one text a turn.

use futures_channel::oneshot::Sender;
use model::{Embedder, ModelError, Pooling};

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
        is_for_embeddings: bool,
    ) -> Option<Vectors> {
        let Embed { texts, dimensions, normalize } = request;
        let texts = if is_for_embeddings {
            let n_vocab = engine.model().recipe().sizes().n_vocab;
            texts.iter().map(|text| engine.prompter().tokens(text, n_vocab)).collect()
        } else {
            Err(ModelError::NoPooling { architecture: engine.model().recipe().architecture() }.into())
        };
        match texts {
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
        if embedder.pooling() == Pooling::None {
            let why = "this model makes a vector of each token, not of a text; load it with a pooling, such as mean";
            return Err(ModelError::Options(why.into()).into());
        }
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
