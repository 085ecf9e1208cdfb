//! Errors that keep a model from loading or generating.

use crate::diagnose::Fault;
use crate::drafter::DraftError;
use crate::gguf::{GgufError, SourceError};
use crate::snapshot::SnapshotError;
use crate::stage::StageError;

/// A model that cannot be loaded, or a request that it cannot serve. Each message is one line and names the cause and
/// the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// The file is no usable GGUF file.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// Weights could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A saved session that cannot be used.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A model that cannot draft for another.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// A step that a stage cannot take.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The backend refused or failed.
    #[error(transparent)]
    Backend(#[from] backend_api::Error),
    /// An architecture that this build lacks.
    #[error("the architecture \"{found}\" is not supported, only {supported}; choose another model")]
    Architecture {
        /// Value in the file.
        found: String,
        /// The families that this build has.
        supported: String,
    },
    /// A hyperparameter that makes no sense, or that this build cannot serve.
    #[error("metadata key \"{key}\": {reason}; choose another file, or convert the model again")]
    Hyper {
        /// The metadata key.
        key: String,
        /// Fault of its value.
        reason: String,
    },
    /// A tensor that the architecture needs is absent.
    #[error("the tensor \"{name}\" is missing, which {architecture} models need; download or convert the file again")]
    MissingTensor {
        /// Name of the tensor.
        name: String,
        /// The architecture.
        architecture: &'static str,
    },
    /// A tensor of an unusable shape or type.
    #[error("tensor \"{name}\": {reason}; download or convert the file again")]
    Tensor {
        /// Name of the tensor.
        name: String,
        /// Fault of the tensor.
        reason: String,
    },
    /// A context longer than the model was trained for, or none.
    #[error("a context of {asked} tokens was asked for, but this model allows 1 to {limit}; ask for one in that range")]
    Context {
        /// The context asked for.
        asked: usize,
        /// The longest possible one.
        limit: usize,
    },
    /// More memory than the model may take.
    #[error(
        "{what} of this model take {bytes} bytes with a context of {n_ctx} tokens, and may take {most}; use a smaller \
         context, a KV cache of fewer bits, or allow more memory"
    )]
    Memory {
        /// Purpose of the memory.
        what: &'static str,
        /// How much it takes.
        bytes: u64,
        /// Tokens of the context.
        n_ctx: usize,
        /// How much it may take.
        most: u64,
    },
    /// Experts that the device cannot hold. Each token needs a few of them, but any token may need any.
    #[error(
        "the experts of this model take {bytes} bytes, of which {fits} fit the device; choose a model with fewer experts \
         or in a smaller format, or another backend"
    )]
    Experts {
        /// Bytes of all experts.
        bytes: u64,
        /// Bytes of those that fit, besides the other weights.
        fits: u64,
    },
    /// More tokens than the context has room for.
    #[error(
        "{tokens} tokens do not fit: {used} of the context's {n_ctx} are used; shorten the prompt, or load the model \
         with a larger context"
    )]
    ContextFull {
        /// Tokens to be added.
        tokens: usize,
        /// Tokens in the context already.
        used: usize,
        /// Capacity of the context.
        n_ctx: usize,
    },
    /// A prompt and as many tokens as were asked for are more than the context holds.
    #[error(
        "a prompt of {prompt} tokens and max_tokens {max_tokens} do not fit a context of {n_ctx}; shorten the prompt, \
         ask for fewer tokens, load the model with a larger n_ctx, or choose the overflow policy stop or shift"
    )]
    Overflow {
        /// Tokens of the prompt.
        prompt: usize,
        /// Tokens asked for.
        max_tokens: usize,
        /// Capacity of the context.
        n_ctx: usize,
    },
    /// There is nothing to continue.
    #[error("the prompt has no tokens; give at least one, such as the token that begins a text")]
    EmptyPrompt,
    /// An embedding was asked of a model that is made for text.
    #[error(
        "this {architecture} model gives no embeddings, since its file names no pooling; load it with one (mean, cls, \
         last or none), or use an embedding model"
    )]
    NoPooling {
        /// The architecture.
        architecture: &'static str,
    },
    /// Text was asked of an embedding model.
    #[error("this {architecture} model makes embeddings and no text; ask it for embeddings, or use a language model")]
    NoText {
        /// The architecture.
        architecture: &'static str,
    },
    /// An embedding with NaN or infinite numbers.
    #[error("there is no embedding, since numbers in it are NaN or infinite; download or convert the file again")]
    NoEmbedding,
    /// A token id outside the vocabulary.
    #[error("token {id} is not in the vocabulary of {vocab}; use the tokenizer of this model")]
    Token {
        /// The id.
        id: u32,
        /// Size of the vocabulary.
        vocab: usize,
    },
    /// Logits that are NaN or infinite: weights are, or numbers grew until they were.
    #[error(
        "there is no next token, since numbers are NaN or infinite {}; download or convert the file again, or keep the KV \
         cache in f32",
        .fault.as_ref().map_or_else(|| format!("after the token at {position}"), ToString::to_string)
    )]
    NotANumber {
        /// Position of the token whose logits are not finite.
        position: usize,
        /// Where it begins, if running the step again shows it.
        fault: Option<Fault>,
    },
    /// An answer that cannot be in the format that was asked for.
    #[error("{0}")]
    Constraint(String),
    /// An option out of range.
    #[error("{0}")]
    Options(String),
}
