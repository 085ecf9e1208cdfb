//! Classifiers: they score a text, such as a query with a document (reranking), instead of embedding it.
//!
//! *Source*: Nogueira and Cho, "Passage Re-ranking with BERT", 2019; Zhang et al., "Qwen3 Embedding: Advancing Text
//! Embedding and Reranking Through Foundation Models", 2025.

use std::sync::Arc;

use backend_api::TensorId;
use backend_api::op::{Masking, Norm, Softmax, UnaryKind};

use super::Pooling;
use super::keys::Keys;
use super::recorder::{Recorded, Recorder};
use crate::error::ModelError;
use crate::gguf::StringArray;

/// Key of the names of a classifier's scores.
const LABELS: &str = "classifier.output_labels";

/// Classifier of a family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Classifier {
    /// Pooling of the vectors of a text's tokens.
    pub of: Pooling,
    /// Activation after a first product, if the family has one.
    dense: Option<UnaryKind>,
    /// Norm after that, if the family has one.
    norm: Option<Norm>,
    /// Number of scores.
    scores: usize,
    /// Whether scores are probabilities of each other.
    softmax: bool,
}

impl Classifier {
    /// Reads the classifier of a file, if it has one.
    pub fn read(keys: &Keys<'_>) -> Result<Option<Classifier>, ModelError> {
        let has = |name: &str| keys.tensors.find(name).is_some();
        let (output, dense) = (has("cls.output.weight"), has("cls.weight"));
        let labels = keys.get::<&Arc<StringArray>>(LABELS)?.map_or(1, |labels| labels.len());
        let plain = Classifier { of: Pooling::Cls, dense: None, norm: None, scores: labels, softmax: false };
        let classifier = match keys.tensors.architecture {
            "bert" | "jina-bert-v2" | "neo-bert" => Classifier { dense: Some(UnaryKind::Tanh), ..plain },
            "modern-bert" => {
                let norm = Some(keys.layer_norm()?).filter(|_| has("cls.norm.weight"));
                Classifier { of: Pooling::Mean, dense: Some(UnaryKind::GeluTanh), norm, ..plain }
            }
            "qwen3" | "qwen3vl" if output => Classifier { of: Pooling::Last, softmax: true, ..plain },
            _ => return Ok(None),
        };
        Ok((output || dense).then_some(classifier))
    }
}

impl Recorder<'_> {
    /// Records the scores of a text's pooled vector.
    pub fn scores(&mut self, classifier: Classifier, x: TensorId) -> Recorded {
        let Classifier { dense, norm, scores, softmax, .. } = classifier;
        let mut x = x;
        if let Some(activation) = dense.filter(|_| self.has("cls.weight")) {
            // Without a second product, the first one gives the scores.
            let rows = if self.has("cls.output.weight") { self.cols(x) } else { scores };
            x = self.linear("cls", rows, x)?;
            x = self.unary(activation, x)?;
        }
        if let Some(norm) = norm {
            x = self.norm("cls.norm", norm, x)?;
        }
        if self.has("cls.output.weight") {
            x = self.linear("cls.output", scores, x)?;
        }
        if !softmax {
            return Ok(x);
        }
        self.op(Softmax { scale: 1.0, softcap: 0.0, masking: Masking::default(), sinks: false }, &[x])
    }
}
