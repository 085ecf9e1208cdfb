//! Recorder of one step of a model, or of a stage of it: the graph, with its weights and states.

use std::collections::HashMap;

use backend_api::op::{GetRows, Index, Op};
use backend_api::{DType, Error, Graph, Kind, TensorId, Update};

use super::classifier::Classifier;
use super::state::{ALIGNED, HISTORY, StateSpec};
use super::weights::{Contents, Tensors, Weight};
use super::{EMBEDDING, HIDDEN_IN, HIDDEN_OUT, Head, LOGITS, OutputRows, Pooling, Sizes, Stage};
use crate::arch::kv_cache::KvCache;
use crate::error::ModelError;

/// Result of recording an operator.
pub(super) type Recorded = Result<TensorId, ModelError>;

/// Step to record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    pub tensors: &'a Tensors,
    pub sizes: &'a Sizes,
    pub stage: &'a Stage,
    pub kv_cache: KvCache,
    /// Positions that caches have room for.
    pub capacity: usize,
    /// Number of sequences in the states. If there are several, each row belongs to one of them.
    pub sequences: usize,
    /// Whether attention is causal.
    pub causal: bool,
    /// Pooling of an embedding model.
    pub pooling: Option<Pooling>,
    /// Classifier of the pooled vector, if its scores are wanted.
    pub classifier: Option<Classifier>,
    pub rows: usize,
    pub head: Head,
    /// Width of the activations between stages.
    pub hidden: usize,
}

/// Recorder of an architecture's graph. [`layers`](super::layers) has its vocabulary of layers.
pub(super) struct Recorder<'a> {
    pub step: Step<'a>,
    pub graph: Graph,
    /// Prefix of weight names: `blk.3.` within block 3.
    scope: String,
    /// The block being recorded.
    block: usize,
    /// Whether only the rows that the head needs are left.
    narrowed: bool,
    /// Hidden states, from which the logits are computed.
    pub hidden: Option<TensorId>,
    /// Weights, states and shared results that are recorded already.
    known: HashMap<String, TensorId>,
    /// Keys and values of each block.
    kept: HashMap<usize, [TensorId; 2]>,
    weights: Vec<Weight>,
    states: Vec<StateSpec>,
}

impl<'a> Recorder<'a> {
    pub fn new(step: Step<'a>) -> Recorder<'a> {
        let mut graph = Graph::new();
        graph.take_rows_of(step.sequences);
        Recorder {
            step,
            graph,
            scope: String::new(),
            block: 0,
            narrowed: false,
            hidden: None,
            known: HashMap::new(),
            kept: HashMap::new(),
            weights: Vec::new(),
            states: Vec::new(),
        }
    }

    /// Returns the graph, without nodes that are not needed.
    pub fn into_graph(mut self) -> Result<Graph, ModelError> {
        self.graph.trim();
        let graph = self.graph;
        if graph.nodes().is_empty() {
            return Err(ModelError::Options("a stage without blocks leaves no state; ask it for another head".into()));
        }
        Ok(graph)
    }

    pub fn into_weights(self) -> Vec<Weight> {
        self.weights
    }

    pub fn into_states(self) -> Vec<StateSpec> {
        self.states
    }

    /// Records the input of the first block: tokens as `embed` represents them, or the activations of the stage
    /// before.
    pub fn input(&mut self, embed: impl FnOnce(&mut Self) -> Recorded) -> Recorded {
        if self.step.stage.embed {
            return embed(self);
        }
        Ok(self.graph.input(HIDDEN_IN, &[self.step.rows, self.step.hidden], DType::F32)?)
    }

    /// Records the blocks of the stage. `block` is called with the number of each and its input.
    pub fn blocks(&mut self, x: TensorId, block: impl Fn(&mut Self, usize, TensorId) -> Recorded) -> Recorded {
        let mut x = x;
        for i in self.step.stage.blocks.clone() {
            self.block = i;
            self.use_weights_of(i);
            x = block(self, i, x)?;
        }
        self.scope.clear();
        Ok(x)
    }

    /// Makes the block use the weights of a block of the file. Its states remain its own.
    pub fn use_weights_of(&mut self, block: usize) {
        self.scope = format!("blk.{block}.");
    }

    /// Records the output after the blocks: the logits that `head` records and the results made of them, or the
    /// activations for the next stage.
    pub fn output(
        &mut self,
        x: TensorId,
        head: impl FnOnce(&mut Self, TensorId) -> Recorded,
    ) -> Result<(), ModelError> {
        let Step { stage, sizes, head: wanted, .. } = self.step;
        if wanted.rows == OutputRows::None && stage.blocks.end == sizes.n_blocks {
            return Ok(());
        }
        if !stage.head {
            return Ok(self.graph.output(x, HIDDEN_OUT)?);
        }
        let x = if self.narrowed { x } else { self.wanted_row(x)? };
        let logits = head(self, x)?;
        if wanted.embedding {
            // Encoders do not have logits.
            let pooled = self.pool(self.hidden.unwrap_or(logits))?;
            self.graph.output(pooled, EMBEDDING)?;
        }
        if wanted.logits {
            self.graph.output(logits, LOGITS)?;
        }
        wanted.token.map_or(Ok(()), |choice| self.choose(logits, choice))
    }

    /// Selects, in the last block, the rows that the head needs. All that follows is computed only for them.
    pub fn wanted<const N: usize>(&mut self, rows: [TensorId; N]) -> Result<[TensorId; N], ModelError> {
        let mut rows = rows;
        if self.step.stage.head && self.block + 1 == self.step.sizes.n_blocks {
            for x in &mut rows {
                *x = self.wanted_row(*x)?;
            }
            self.narrowed = true;
        }
        Ok(rows)
    }

    fn wanted_row(&mut self, x: TensorId) -> Recorded {
        let Step { rows, head, sequences, pooling, .. } = self.step;
        let index = match pooling.filter(|_| head.embedding) {
            _ if rows == 1 || sequences > 1 => return Ok(x),
            Some(Pooling::None | Pooling::Mean | Pooling::Rank) => return Ok(x),
            Some(Pooling::Cls) => Index::First,
            None if head.rows == OutputRows::All => return Ok(x),
            _ => Index::Last,
        };
        self.op(GetRows { index }, &[x])
    }

    pub fn op(&mut self, op: impl Into<Op>, operands: &[TensorId]) -> Recorded {
        Ok(self.graph.push(op, operands)?)
    }

    /// Records an operator with several results.
    pub fn ops<const N: usize>(
        &mut self,
        op: impl Into<Op>,
        operands: &[TensorId],
    ) -> Result<[TensorId; N], ModelError> {
        let op = op.into();
        let name = op.name();
        let wrong = |found: Vec<_>| Error::Invalid(format!("{name} has {} results, not {N}", found.len()));
        Ok(self.graph.push_multi(op, operands)?.try_into().map_err(wrong)?)
    }

    /// Returns the columns of a tensor.
    pub fn cols(&self, x: TensorId) -> usize {
        self.graph.tensor(x).shape.cols()
    }

    /// Returns the rows of a tensor.
    pub fn rows(&self, x: TensorId) -> usize {
        self.graph.tensor(x).shape.rows()
    }

    /// Returns the name of a tensor in the file: within a block, with the block's prefix.
    pub fn scoped(&self, name: &str) -> String {
        format!("{}{name}", self.scope)
    }

    pub fn weight(&mut self, name: String, shape: &[usize], dtype: DType, contents: Contents) -> Recorded {
        if let Some(id) = self.known.get(&name) {
            return Ok(*id);
        }
        let id = self.graph.weight(&name, shape, dtype)?;
        self.known.insert(name.clone(), id);
        self.weights.push(Weight { name, shape: shape.to_vec(), dtype, contents });
        Ok(id)
    }

    /// Records a state. No other function creates states.
    pub fn state(&mut self, name: String, shape: &[usize], dtype: DType, update: Update) -> Recorded {
        if let Some(id) = self.known.get(&name) {
            return Ok(*id);
        }
        let mut shape = shape.to_vec();
        shape.iter_mut().take(1).for_each(|rows| *rows *= self.step.sequences);
        let id = self.graph.external(Kind::State(update), &name, &shape, dtype)?;
        self.known.insert(name.clone(), id);
        self.states.push(StateSpec { name, shape, dtype, update });
        Ok(id)
    }

    /// Records a result that is computed once for all blocks, with weights outside of blocks.
    pub fn once(&mut self, name: &str, result: impl FnOnce(&mut Self) -> Recorded) -> Recorded {
        if let Some(id) = self.known.get(name) {
            return Ok(*id);
        }
        let id = self.outside(result)?;
        self.known.insert(name.into(), id);
        Ok(id)
    }

    /// Records a result with weights outside of blocks.
    pub fn outside(&mut self, result: impl FnOnce(&mut Self) -> Recorded) -> Recorded {
        let scope = std::mem::take(&mut self.scope);
        let id = result(self)?;
        self.scope = scope;
        Ok(id)
    }

    /// Keeps the keys and values of the block for later ones.
    pub fn keep(&mut self, keys_values: [TensorId; 2]) {
        self.kept.insert(self.block, keys_values);
    }

    /// Returns the keys and values of an earlier block.
    pub fn kept(&self, block: usize) -> Result<[TensorId; 2], ModelError> {
        let missing = || ModelError::Options(format!("block {} needs the keys of block {block}", self.block));
        self.kept.get(&block).copied().ok_or_else(missing)
    }

    /// Records the token history.
    pub fn history(&mut self) -> Recorded {
        let Step { sizes, sequences, .. } = self.step;
        let tokens = if sequences > 1 { sizes.n_ctx.next_multiple_of(ALIGNED) } else { sizes.n_ctx };
        self.state(HISTORY.into(), &[tokens], DType::I32, Update::Append)
    }

    /// Records a cache of the block, with a row for each position.
    pub fn cache(&mut self, name: &str, cols: usize) -> Recorded {
        let name = format!("blk.{}.{name}", self.block);
        self.state(name, &[self.step.capacity, cols], self.step.kv_cache.dtype(), Update::Append)
    }
}
