//! Request of a generation as plain data, which snapshots keep.

use serde::{Deserialize, Serialize};

use super::adjust::Adjust;
use super::generation::Finish;

/// Method of choosing the next token.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sampling {
    /// The likeliest token.
    Greedy,
    /// A random token among the likeliest.
    Random {
        /// Divisor of the logits; 0 is greedy.
        temperature: f32,
        /// Number of candidates, at most [`TopK::MAX`](backend_api::op::TopK::MAX), which 0 stands for.
        top_k: u32,
        /// Cumulative probability: the smallest set of candidates that reaches it is kept; 1 keeps all.
        top_p: f32,
        /// Seed. Equal seeds give equal texts.
        seed: u64,
    },
}

/// Request of a generation in a form that can be saved, with the reason why it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedRequest {
    /// Tokens of the prompt; the text's tokens after them were generated.
    pub prompt: usize,
    /// Value of [`GenerateOptions::max_tokens`](crate::GenerateOptions::max_tokens), on any platform.
    pub max_tokens: Option<u64>,
    /// Name of [`GenerateOptions::overflow`](crate::GenerateOptions::overflow).
    pub overflow: String,
    /// Number of tokens that always stay, for [`Overflow::Shift`](crate::Overflow::Shift).
    pub keep: Option<usize>,
    /// Value of [`GenerateOptions::stop`](crate::GenerateOptions::stop).
    pub stop: Vec<String>,
    /// Value of [`GenerateOptions::stop_tokens`](crate::GenerateOptions::stop_tokens).
    pub stop_tokens: Option<Vec<u32>>,
    /// Value of [`GenerateOptions::adjust`](crate::GenerateOptions::adjust).
    #[serde(default, skip_serializing_if = "Adjust::is_neutral")]
    pub adjust: Adjust,
    /// Value of [`GenerateOptions::log_probs`](crate::GenerateOptions::log_probs).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_probs: Option<usize>,
    /// The [`Constraint::source`](crate::Constraint::source) of [`GenerateOptions::constraint`](crate::GenerateOptions::constraint).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraint: Option<String>,
    /// Reason for the end; absent if the generation has not ended.
    pub finish: Option<Finish>,
}
