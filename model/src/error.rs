//! Errors of loading and running a model.

use crate::gguf::{GgufError, SourceError};
use crate::runtime::DraftError;
use crate::runtime::Fault;
use crate::runtime::SnapshotError;
use crate::runtime::StageError;

/// Error of loading a model, or of a request. Each message is one line and names the cause and the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// The file is not a usable GGUF file.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// Weights could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A snapshot cannot be used.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The draft model does not suit the model.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// A step that a stage cannot take.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The backend refused or failed.
    #[error(transparent)]
    Backend(#[from] backend_api::Error),
    /// The architecture is not supported.
    #[error("the architecture \"{found}\" is not supported, only {supported}; choose another model")]
    Architecture {
        /// Name of the architecture in the file.
        found: String,
        /// Supported architectures.
        supported: String,
    },
    /// A hyperparameter is invalid or not supported.
    #[error("metadata key \"{key}\": {reason}; choose another file, or convert the model again")]
    Hyper {
        /// The metadata key.
        key: String,
        /// Reason why the value is refused.
        reason: String,
    },
    /// A required tensor is missing.
    #[error("the tensor \"{name}\" is missing, which {architecture} models need; download or convert the file again")]
    MissingTensor {
        /// Name of the tensor.
        name: String,
        /// The architecture.
        architecture: &'static str,
    },
    /// A tensor has an unusable shape or type.
    #[error("tensor \"{name}\": {reason}; download or convert the file again")]
    Tensor {
        /// Name of the tensor.
        name: String,
        /// Reason why the tensor is refused.
        reason: String,
    },
    /// The requested context is longer than that of training, or empty.
    #[error("a context of {asked} tokens was asked for, but this model allows 1 to {limit}; ask for one in that range")]
    Context {
        /// Requested context.
        asked: usize,
        /// Longest possible context.
        limit: usize,
    },
    /// The model exceeds its memory limit.
    #[error(
        "{what} of this model take {bytes} bytes with a context of {n_ctx} tokens, and may take {most}; use a smaller \
         context, a KV cache of fewer bits, or allow more memory"
    )]
    Memory {
        /// Purpose of the memory.
        what: &'static str,
        /// Required bytes.
        bytes: u64,
        /// Size of the context in tokens.
        n_ctx: usize,
        /// Allowed bytes.
        most: u64,
    },
    /// The experts do not fit the device. Each token needs only a few of them, but any of them may be needed.
    #[error(
        "the experts of this model take {bytes} bytes, of which {fits} fit the device; choose a model with fewer experts \
         or in a smaller format, or another backend"
    )]
    Experts {
        /// Bytes of all experts.
        bytes: u64,
        /// Bytes of those that fit beside the other weights.
        fits: u64,
    },
    /// More tokens than the context has room for.
    #[error(
        "{tokens} tokens do not fit: {used} of the context's {n_ctx} are used; shorten the prompt, or load the model \
         with a larger context"
    )]
    ContextFull {
        /// Tokens to add.
        tokens: usize,
        /// Tokens already in the context.
        used: usize,
        /// Size of the context.
        n_ctx: usize,
    },
    /// The prompt and the requested number of tokens exceed the context.
    #[error(
        "a prompt of {prompt} tokens and max_tokens {max_tokens} do not fit a context of {n_ctx}; shorten the prompt, \
         ask for fewer tokens, load the model with a larger n_ctx, or choose the overflow policy stop or shift"
    )]
    Overflow {
        /// Tokens of the prompt.
        prompt: usize,
        /// Requested tokens.
        max_tokens: usize,
        /// Size of the context.
        n_ctx: usize,
    },
    /// The prompt is empty.
    #[error("the prompt has no tokens; give at least one, such as the token that begins a text")]
    EmptyPrompt,
    /// An embedding was requested from a language model.
    #[error(
        "this {architecture} model gives no embeddings, since its file names no pooling; load it with one (mean, cls, \
         last or none), or use an embedding model"
    )]
    NoPooling {
        /// The architecture.
        architecture: &'static str,
    },
    /// Scores were requested from a model that has none.
    #[error(
        "this {architecture} model scores no texts, since its file has no classifier that is known for the family; use \
         a reranker, or for vectors another pooling (mean, cls, last or none)"
    )]
    NoClassifier {
        /// The architecture.
        architecture: &'static str,
    },
    /// An embedding or text was requested from a reranker.
    #[error(
        "this {architecture} model scores documents and makes no embeddings and no text; ask it to rerank, or for vectors \
         load it with another pooling (mean, cls, last or none)"
    )]
    OnlyScores {
        /// The architecture.
        architecture: &'static str,
    },
    /// Text was requested from an embedding model.
    #[error("this {architecture} model makes embeddings and no text; ask it for embeddings, or use a language model")]
    NoText {
        /// The architecture.
        architecture: &'static str,
    },
    /// Text, a stage or a batch was requested from a model whose tokens see each other.
    #[error(
        "this {architecture} model fills in masked tokens (diffusion), which is not supported; ask for its logits, or \
         use a language model that continues texts"
    )]
    Diffusion {
        /// The architecture.
        architecture: &'static str,
    },
    /// An embedding has numbers that are NaN or infinite.
    #[error("there is no embedding, since numbers in it are NaN or infinite; download or convert the file again")]
    NoEmbedding,
    /// A token id is outside the vocabulary.
    #[error("token {id} is not in the vocabulary of {vocab}; use the tokenizer of this model")]
    Token {
        /// The id.
        id: u32,
        /// Size of the vocabulary.
        vocab: usize,
    },
    /// Logits are NaN or infinite, because weights are, or because numbers overflowed.
    #[error(
        "there is no next token, since numbers are NaN or infinite {}; download or convert the file again, or keep the KV \
         cache in f32",
        .fault.as_ref().map_or_else(|| format!("after the token at {position}"), ToString::to_string)
    )]
    NotANumber {
        /// Position of the token whose logits are not finite.
        position: usize,
        /// First operator with a bad result, if running the step again finds it.
        fault: Option<Fault>,
    },
    /// The answer cannot satisfy the requested format.
    #[error("{0}")]
    Constraint(String),
    /// An option is out of range.
    #[error("{0}")]
    Options(String),
}
