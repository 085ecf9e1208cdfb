//! Choice of a token from the logits: the nodes after the head in a graph.

use backend_api::op::{Append, ArgMax, At, Concat, Masking, Penalize, Penalties, Pick, Sample, Softmax, TopK};
use backend_api::{DType, TensorId, Update};

use super::recorder::{Recorded, Recorder, Step};
use super::{BEST, BIAS, CHOSEN, OutputRows, PENALTIES, PROBABILITIES, TokenChoice};
use crate::error::ModelError;

/// Most tokens whose probabilities a step reports for each position.
pub const MAX_TOP: usize = 20;

impl Recorder<'_> {
    /// Records the choice of a token after the last row, which is written into the history, or after each row, as an
    /// output.
    pub(super) fn choose(&mut self, logits: TensorId, choice: TokenChoice) -> Result<(), ModelError> {
        let Step { head, sequences, .. } = self.step;
        let token = match choice {
            TokenChoice { adjust: true, sample } => self.adjusted(logits, sample)?,
            TokenChoice { sample: true, .. } => self.drawn(logits, None)?,
            TokenChoice { sample: false, .. } => self.op(ArgMax, &[logits])?,
        };
        if head.log_probs {
            self.tell(logits, token)?;
        }
        if head.rows == OutputRows::All || sequences > 1 {
            self.graph.round_rows_alike();
        }
        if head.rows == OutputRows::All {
            return Ok(self.graph.output(token, CHOSEN)?);
        }
        let history = self.history()?;
        let at = if sequences > 1 { At::EachNext } else { At::Next };
        self.op(Append { at }, &[history, token])?;
        Ok(())
    }

    /// Records the best tokens, and the choice of one of them.
    fn drawn(&mut self, logits: TensorId, penalties: Option<TensorId>) -> Recorded {
        let k = TopK::MAX.min(self.cols(logits));
        let best: [_; 2] = self.ops(TopK { k }, &[logits])?;
        let operands: Vec<_> = best.into_iter().chain(penalties).collect();
        self.op(Sample, &operands)
    }

    /// Records the choice of a token with penalties and biases.
    fn adjusted(&mut self, logits: TensorId, sample: bool) -> Recorded {
        let cols = self.cols(logits);
        let history = self.history()?;
        let bias = self.asked(BIAS, cols)?;
        let penalties = self.asked(PENALTIES, Penalties::COLS)?;
        let adjusted = self.op(Penalize, &[logits, history, bias, penalties])?;
        if sample { self.drawn(adjusted, Some(penalties)) } else { self.op(ArgMax, &[adjusted]) }
    }

    /// Records a row that requests write: one for each sequence of a step.
    fn asked(&mut self, name: &str, cols: usize) -> Recorded {
        if self.step.sequences > 1 {
            return self.state(name.into(), &[1, cols], DType::F32, Update::ByCaller);
        }
        Ok(self.graph.input(name, &[1, cols], DType::F32)?)
    }

    /// Records the probabilities of a token and of the likeliest ones, as outputs.
    fn tell(&mut self, logits: TensorId, token: TensorId) -> Result<(), ModelError> {
        let softmax = Softmax { scale: 1.0, softcap: 0.0, masking: Masking::default(), sinks: false };
        let probabilities = self.op(softmax, &[logits])?;
        let k = MAX_TOP.min(self.cols(logits));
        let [_, best]: [_; 2] = self.ops(TopK { k }, &[logits])?;
        let chosen = self.op(Pick, &[probabilities, token])?;
        let others = self.op(Pick, &[probabilities, best])?;
        let values = self.op(Concat { axis: 1 }, &[chosen, others])?;
        self.graph.output(values, PROBABILITIES)?;
        Ok(self.graph.output(best, BEST)?)
    }
}
