//! `route`: which experts each token goes to, and how much each of them counts.
//!
//! *Operands*: logits `[t, n]`; with `biased` also a bias `[n]`.
//! *Results*: ids `[t, k]` i32, weights `[t, k]` f32. The gate makes scores of the logits; the experts of the k largest
//! scores are chosen, the largest first, of equals the first first. A bias is added to the scores for that alone. The
//! weights are the scores of those chosen, over their sum if `normalised`, times `scale`. In a row with a logit that is NaN
//! or infinite all ids are -1 and all weights 0.
//!
//! With `groups`, neighbouring experts make groups, and only those of the best groups can be chosen. The score of a group is
//! the sum of the two largest of its experts, with the bias; of equal groups the first is better.
//! *Source*: Shazeer et al., "Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer", 2017; of
//! the bias and the groups: DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024.

use super::describe::{Describe, F32, Output, ensure, floats, with_cols};
use crate::tensor::{DType, Tensor};

/// Function that turns logits into scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gate {
    /// Softmax over all experts.
    Softmax,
    /// Softmax over those chosen, which are those of the largest logits.
    SoftmaxOfChosen,
    /// Sigmoid of each.
    Sigmoid,
}

impl Gate {
    /// All gates.
    pub const ALL: [Gate; 3] = [Gate::Softmax, Gate::SoftmaxOfChosen, Gate::Sigmoid];
}

/// Groups of experts, some of which are chosen first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Groups {
    /// Number of groups; at most [`Route::MAX_GROUPS`].
    pub count: usize,
    /// Groups whose experts can be chosen.
    pub used: usize,
}

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Route {
    /// Experts a token goes to; at most [`Route::MAX`].
    pub k: usize,
    /// Function that turns logits into scores.
    pub gate: Gate,
    /// Whether a bias takes part in the choice.
    pub biased: bool,
    /// Whether weights are divided by their sum, or by [`Route::LEAST_SUM`] if that is more.
    pub normalised: bool,
    /// Multiplies the weights.
    pub scale: f32,
    /// Groups that are chosen before experts, if there are some.
    pub groups: Option<Groups>,
}

impl Route {
    /// The largest k: kernels hold those chosen on chip.
    pub const MAX: usize = 64;
    /// The most groups: kernels hold a bit for each.
    pub const MAX_GROUPS: usize = 32;
    /// The least that weights are divided by: the smallest normal number of 16 bits, as llama.cpp has it.
    pub const LEAST_SUM: f32 = 6.103_515_6e-5;
}

impl Describe for Route {
    const NAME: &'static str = "route";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let expected = 1 + usize::from(self.biased);
        ensure(inputs.len() == expected, || format!("takes {expected} operands, not {}", inputs.len()))?;
        floats(inputs)?;
        let logits = inputs[0].shape;
        ensure(logits.rank() == 2, || "logits must be a matrix".into())?;
        let most = logits.cols().min(Self::MAX);
        ensure((1..=most).contains(&self.k), || format!("k = {} is not in 1..={most}", self.k))?;
        ensure(self.scale.is_finite(), || "the scale must be finite".into())?;
        if let Some(bias) = inputs.get(1) {
            ensure(bias.shape.dims().eq([logits.cols()]), || format!("the bias must be [{}]", logits.cols()))?;
        }
        if let Some(Groups { count, used }) = self.groups {
            let n = logits.cols();
            let counts = (1..=Self::MAX_GROUPS).contains(&count) && (1..=count).contains(&used);
            ensure(counts && n.is_multiple_of(count) && n / count >= 2, || {
                format!("{n} experts make no {count} groups of which {used} are used")
            })?;
            let most = n / count * used;
            ensure(self.k <= most, || format!("{used} groups have but {most} of {} experts", self.k))?;
        }
        let out = with_cols(&logits, self.k)?;
        Ok(vec![Output::New(out, DType::I32), Output::New(out, DType::F32)])
    }
}
