//! Penalties and biases. They are on the device in two rows that the host writes: a bias for each token, and the
//! penalties.

use backend_api::op::Penalties;
use serde::{Deserialize, Serialize};

use crate::error::ModelError;

/// Number of last tokens, of prompt and text, that the repetition penalty applies to, as in llama.cpp.
const LAST: u32 = 64;
/// Most generated tokens that the other penalties count, from the end: each logit is compared with each of them.
const COUNTED: u32 = 1024;
/// Most tokens with a bias: biases are saved with snapshots.
const MAX_BIASES: usize = 1024;
/// Largest penalty and bias.
const MOST: f32 = 100.0;

/// Adjustments of the probabilities of tokens. The default changes nothing, and costs nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Adjust {
    /// Divisor of positive logits, and factor of negative ones, for tokens among the last 64 of prompt and text; 1
    /// changes nothing.
    pub repetition_penalty: f32,
    /// Penalty that is subtracted from the logits of tokens that were generated before, without the prompt. Only tokens
    /// that are still in the context count, and at most the last 1,024.
    pub presence_penalty: f32,
    /// Penalty for each time that the token was generated.
    pub frequency_penalty: f32,
    /// Drops candidates whose probability, at the temperature, is below this fraction of the best one's; 0 drops none.
    pub min_p: f32,
    /// Biases that are added to the logits of tokens.
    pub logit_bias: Vec<(u32, f32)>,
}

impl Default for Adjust {
    fn default() -> Adjust {
        Adjust {
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            min_p: 0.0,
            logit_bias: Vec::new(),
        }
    }
}

impl Adjust {
    /// Returns whether it changes nothing.
    pub fn is_neutral(&self) -> bool {
        *self == Adjust::default()
    }

    /// Checks that all values are in range.
    pub(crate) fn check(&self, n_vocab: usize) -> Result<(), ModelError> {
        let refused = |why: String| Err(ModelError::Options(why));
        if !(self.repetition_penalty > 0.0 && self.repetition_penalty <= MOST) {
            return refused(format!("the repetition penalty must be above 0 and at most {MOST}; 1 changes nothing"));
        }
        // NaN is not in any range.
        let in_range = |value: &f32| (-MOST..=MOST).contains(value);
        if ![self.presence_penalty, self.frequency_penalty].iter().all(in_range) {
            return refused(format!("penalties must be between -{MOST} and {MOST}; 0 changes nothing"));
        }
        if !(0.0..=1.0).contains(&self.min_p) {
            return refused("min-p must be between 0 and 1; 0 keeps all candidates".into());
        }
        match self.logit_bias.iter().find(|(id, bias)| *id as usize >= n_vocab || !in_range(bias)) {
            Some((id, _)) if *id as usize >= n_vocab => Err(ModelError::Token { id: *id, vocab: n_vocab }),
            Some((id, _)) => refused(format!("the bias of token {id} must be between -{MOST} and {MOST}")),
            None if self.logit_bias.len() > MAX_BIASES => {
                refused(format!("{} tokens with a bias are more than {MAX_BIASES}; use fewer", self.logit_bias.len()))
            }
            None => Ok(()),
        }
    }

    /// Returns the bias of every token.
    pub(crate) fn biases(&self, n_vocab: usize) -> Vec<f32> {
        let mut row = vec![0.0; n_vocab];
        for (id, bias) in &self.logit_bias {
            row.get_mut(*id as usize).into_iter().for_each(|to| *to = *bias);
        }
        row
    }

    /// Returns the penalties for a context whose generated tokens start at a position. Steps look at only as many
    /// tokens as needed.
    pub(crate) fn penalties(&self, begin: usize) -> Penalties {
        let counts = self.presence_penalty != 0.0 || self.frequency_penalty != 0.0;
        Penalties {
            repetition: self.repetition_penalty,
            last: if self.repetition_penalty == 1.0 { 0 } else { LAST },
            presence: self.presence_penalty,
            frequency: self.frequency_penalty,
            counted: if counts { COUNTED } else { 0 },
            begin: begin as u32,
            min_p: self.min_p,
        }
    }
}
