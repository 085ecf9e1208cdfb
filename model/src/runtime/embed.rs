//! Embeddings: a vector for each text.
//!
//! Attention may be bidirectional, so a text goes through the model in a single step, of a program with at least as
//! many rows. Rows beyond the text are computed and ignored.

use std::collections::HashMap;
use std::rc::Rc;

use backend_api::run::{self, Host, read_rows};
use backend_api::{Kind, Pace, Program, Shape, StepParams, StorageId, Tensor};

use crate::arch::{EMBEDDING, HISTORY, Pooling, StateSpec};
use crate::error::ModelError;
use crate::runtime::load::{Model, Storages, no_storage};
use crate::runtime::session::{Rewritten, rows_for};

/// Embedding of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// The vectors, one after the other: one, or one for each token without pooling.
    pub values: Vec<f32>,
    /// Width of a vector.
    pub width: usize,
}

impl Embedding {
    /// Iterates over the vectors.
    pub fn vectors(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.width)
    }

    /// Scales the vectors to length 1, so that their dot product is the cosine similarity. A zero vector stays as it
    /// is.
    pub fn normalized(self) -> Embedding {
        let Embedding { mut values, width } = self;
        for vector in values.chunks_exact_mut(width) {
            let length = vector.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
            if length > 0.0 {
                vector.iter_mut().for_each(|v| *v = (f64::from(*v) / length) as f32);
            }
        }
        Embedding { values, width }
    }

    /// Keeps only the first `width` numbers of each vector. Use it with models that were trained for it (Matryoshka
    /// embeddings), and before [normalizing](Self::normalized).
    ///
    /// *Errors*: `width` is 0, or larger than the vector.
    pub fn shortened(self, width: usize) -> Result<Embedding, ModelError> {
        if width == 0 || width > self.width {
            let why =
                format!("a vector of {width} numbers was asked for, but there are 1 to {}; ask for those", self.width);
            return Err(ModelError::Options(why));
        }
        let values = self.vectors().flat_map(|vector| &vector[..width]).copied().collect();
        Ok(Embedding { values, width })
    }
}

struct Compiled {
    program: Box<dyn Program>,
    output: StorageId,
    /// Width of a vector.
    width: usize,
    /// Outputs, which are freed after the program.
    _outputs: Storages,
}

/// Embedder of texts, one at a time.
pub struct Embedder {
    // Programs are dropped before the storages that they are bound to. Rows double with every second program, so all
    // programs together take less memory than four of the largest.
    programs: HashMap<usize, Compiled>,
    states: Storages,
    /// Recurrent states, which are reset for each text.
    rewritten: Rewritten,
    model: Rc<Model>,
    pooling: Pooling,
    history: StorageId,
    pace: Option<Pace>,
}

impl Embedder {
    /// Makes an embedder.
    ///
    /// *Errors*: not an embedding model; memory; the device was lost.
    pub fn new(model: Rc<Model>) -> Result<Embedder, ModelError> {
        let recipe = model.recipe();
        let pooling = recipe.pooling().ok_or(ModelError::NoPooling { architecture: recipe.architecture() })?;
        if !recipe.is_whole() {
            let why = "a stage of a model gives no embedding by itself; load the whole model for embeddings";
            return Err(ModelError::Options(why.into()));
        }
        let (mut states, mut rewritten) = (Storages::new(model.backend().clone()), Rewritten::default());
        for StateSpec { name, shape, dtype, update } in recipe.states()? {
            let state = Tensor { name, shape: Shape::new(&shape)?, dtype, kind: Kind::State(update) };
            rewritten.add(states.create(&state)?, &state, update)?;
        }
        let history = states.get(HISTORY).ok_or_else(|| no_storage(HISTORY))?;
        Ok(Embedder { programs: HashMap::new(), states, rewritten, model, pooling, history, pace: None })
    }

    /// Returns the model.
    pub fn model(&self) -> &Rc<Model> {
        &self.model
    }

    /// Returns how the vectors of a text's tokens are pooled.
    pub fn pooling(&self) -> Pooling {
        self.pooling
    }

    /// Sets the step-time budget of the device: longer steps are split into parts.
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = Some(pace);
    }

    /// Compiles the program for a text of so many tokens, unless it is compiled already.
    ///
    /// *Errors*: shader or driver errors, memory, the device was lost.
    pub fn prepare(&mut self, tokens: usize) -> Result<(), ModelError> {
        self.program(rows_for(tokens, self.model.recipe().sizes().n_ctx)).map(|_| ())
    }

    /// Returns the program for so many rows.
    fn program(&mut self, rows: usize) -> Result<(&mut Compiled, Option<&mut Pace>), ModelError> {
        if !self.programs.contains_key(&rows) {
            let compiled = self.compile(rows)?;
            self.programs.insert(rows, compiled);
        }
        let compiled = self.programs.get_mut(&rows).ok_or_else(|| no_storage("a program"))?;
        Ok((compiled, self.pace.as_mut()))
    }

    fn compile(&self, rows: usize) -> Result<Compiled, ModelError> {
        let Embedder { model, states, .. } = self;
        let backend = model.backend();
        let plan = backend.plan(model.recipe().graph(rows, model.recipe().head())?)?;
        let (mut outputs, mut width) = (Storages::new(backend.clone()), 0);
        let mut bound = Vec::new();
        for (_, tensor) in plan.graph().externals() {
            bound.push(match tensor.kind {
                Kind::Weight => model.weight(&tensor.name).ok_or_else(|| no_storage(&tensor.name))?,
                Kind::State(_) => states.get(&tensor.name).ok_or_else(|| no_storage(&tensor.name))?,
                Kind::Output | Kind::Input | Kind::Temporary => {
                    width = tensor.shape.cols();
                    outputs.create(tensor)?
                }
            });
        }
        let program = backend.compile(&plan, &bound)?;
        let output = outputs.get(EMBEDDING).ok_or_else(|| no_storage(EMBEDDING))?;
        Ok(Compiled { program, output, width, _outputs: outputs })
    }

    /// Waits until all programs are compiled and the device has finished all work.
    ///
    /// *Errors*: the device was lost.
    pub async fn settle(&self, host: &dyn Host) -> Result<(), ModelError> {
        let backend = &**self.model.backend();
        run::ready(backend, host).await?;
        Ok(read_rows(backend, self.history, 0, 1, &mut [0; 4], host).await?)
    }

    /// Embeds a text. The vector is not normalized.
    ///
    /// *Errors*: no tokens, unknown ones, or more than the context holds; numbers that are not finite; as
    /// [`Self::prepare`]; the device was lost.
    pub async fn embed(&mut self, tokens: &[u32], host: &dyn Host) -> Result<Embedding, ModelError> {
        let sizes = *self.model.recipe().sizes();
        if tokens.is_empty() {
            return Err(ModelError::EmptyPrompt);
        }
        if tokens.len() > sizes.n_ctx {
            return Err(ModelError::ContextFull { tokens: tokens.len(), used: 0, n_ctx: sizes.n_ctx });
        }
        if let Some(&id) = tokens.iter().find(|id| **id as usize >= sizes.n_vocab) {
            return Err(ModelError::Token { id, vocab: sizes.n_vocab });
        }
        let (backend, history, pooling) = (self.model.backend().clone(), self.history, self.pooling);
        backend.write(history, 0, bytemuck::cast_slice(tokens))?;
        // Each text begins with zero states.
        self.rewritten.clear(&*backend)?;
        let rows = rows_for(tokens.len(), sizes.n_ctx);
        let (compiled, pace) = self.program(rows)?;
        let params = StepParams::at(0, tokens.len() as u32);
        run::step(&mut *compiled.program, rows, &params, pace, (&*backend, host)).await?;
        let (output, width) = (compiled.output, compiled.width);
        let rows = if pooling == Pooling::None { tokens.len() } else { 1 };
        let mut values = vec![0f32; rows * width];
        read_rows(&*backend, output, 0, rows, bytemuck::cast_slice_mut(&mut values), host).await?;
        if let Some(pace) = &mut self.pace {
            pace.done(pace.mark(), host.now_ms());
        }
        if !values.iter().all(|value| value.is_finite()) {
            return Err(ModelError::NoEmbedding);
        }
        Ok(Embedding { values, width })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_shortened_before_they_are_normalized() {
        let embedding = Embedding { values: vec![3.0, 4.0, 9.0, 0.0, 0.0, 1.0], width: 3 };
        let short = embedding.clone().shortened(2).unwrap().normalized();
        assert_eq!(short, Embedding { values: vec![0.6, 0.8, 0.0, 0.0], width: 2 });
        assert_eq!(embedding.vectors().len(), 2);
        for width in [0, 4] {
            assert!(embedding.clone().shortened(width).is_err());
        }
    }
}
