//! Description of a file, and of the resources to run it on this machine. Weights are not loaded.

use backend_api::Backend;
use backend_api::run::Host;
use model::{ByteSource, Footprint, Gguf, Model, ModelError, Recipe};
use serde::Serialize;

use crate::engine::EngineOptions;
use crate::error::EngineError;
use crate::ladder::{Candidate, ladder};

/// A file, and the candidate backends of this machine.
#[derive(Debug, Clone, Serialize)]
pub struct Inspection {
    /// The architecture in the file's metadata.
    pub architecture: String,
    /// The model's name, if the file has one.
    pub name: Option<String>,
    /// Number of parameters: the elements of all tensors.
    pub parameters: u64,
    /// Size of the training context in tokens, if the file says it.
    pub n_ctx_train: Option<u64>,
    /// Size of the context that states are counted for, in tokens; absent if the architecture is not supported.
    pub n_ctx: Option<usize>,
    /// The tokenizer and its variant, as the file names them.
    pub tokenizer: Option<String>,
    /// All tensors, in the file's order.
    pub tensors: Vec<InspectedTensor>,
    /// All candidate backends, best first.
    pub rungs: Vec<InspectedRung>,
}

/// A tensor of a file.
#[derive(Debug, Clone, Serialize)]
pub struct InspectedTensor {
    /// The name.
    pub name: String,
    /// The shape, row-major.
    pub shape: Vec<usize>,
    /// Storage format of its elements.
    pub format: &'static str,
    /// Bytes in the file.
    pub bytes: u64,
}

/// A candidate backend for a file.
#[derive(Debug, Clone, Serialize)]
pub struct InspectedRung {
    /// Name of the backend and its variant.
    pub name: &'static str,
    /// Whether the backend can be opened and has all operators of the model. Memory is not tried.
    pub runs: bool,
    /// Reasons why it cannot run the file.
    pub reasons: Vec<String>,
    /// Device memory of weights and states together; programs take a little more.
    ///
    /// *Units*: bytes.
    pub device_bytes: Option<u64>,
    /// Device memory of the states of one sequence with a full context.
    ///
    /// *Units*: bytes.
    pub state_bytes: Option<u64>,
}

/// Reads a file's header, opens all available backends, and asks each whether it can run the model.
///
/// *Errors*: the file is not GGUF, or malformed. A backend that cannot run it is not an error: its rung has the reason.
pub async fn inspect(
    source: &dyn ByteSource,
    options: &EngineOptions,
    host: &dyn Host,
) -> Result<Inspection, EngineError> {
    let gguf = Gguf::read(source).await?;
    let text =
        |key: &str| -> Result<Option<String>, EngineError> { Ok(gguf.metadata.get::<&str>(key)?.map(String::from)) };
    let architecture = text("general.architecture")?.unwrap_or_default();
    let recipe = recipe(&gguf, options);
    let mut rungs = Vec::new();
    for candidate in ladder(&options.select) {
        rungs.push(rung(&candidate, &recipe, options).await);
        host.turn().await;
    }
    let tensors = gguf.tensors.iter().map(|tensor| InspectedTensor {
        name: tensor.name.to_string(),
        shape: tensor.shape.clone(),
        format: tensor.format.name(),
        bytes: tensor.bytes,
    });
    let elements = |shape: &[usize]| shape.iter().fold(1u64, |n, dim| n.saturating_mul(*dim as u64));
    Ok(Inspection {
        name: text("general.name")?,
        parameters: gguf.tensors.iter().fold(0, |n: u64, tensor| n.saturating_add(elements(&tensor.shape))),
        n_ctx_train: gguf.metadata.get(&format!("{architecture}.context_length"))?,
        n_ctx: recipe.as_ref().ok().map(|recipe| recipe.sizes().n_ctx),
        tokenizer: match (text("tokenizer.ggml.model")?, text("tokenizer.ggml.pre")?) {
            (Some(model), Some(pre)) => Some(format!("{model} ({pre})")),
            (model, _) => model,
        },
        tensors: tensors.collect(),
        rungs,
        architecture,
    })
}

fn recipe(gguf: &Gguf, options: &EngineOptions) -> Result<Recipe, ModelError> {
    let recipe = Recipe::new(gguf, options.n_ctx)?.with_kv_cache(options.kv_cache);
    match options.pooling {
        Some(pooling) => recipe.with_pooling(pooling),
        None => Ok(recipe),
    }
}

async fn rung(candidate: &Candidate, recipe: &Result<Recipe, ModelError>, options: &EngineOptions) -> InspectedRung {
    let mut rung =
        InspectedRung { name: candidate.name, runs: false, reasons: Vec::new(), device_bytes: None, state_bytes: None };
    if let Some(why) = candidate.excluded(&options.select) {
        rung.reasons.push(why.into());
        return rung;
    }
    let asked = match (recipe, candidate.open(&options.select).await) {
        (Ok(recipe), Ok(backend)) => {
            let asked = ask(recipe, &*backend, &mut rung).and_then(|()| recipe.check_memory(options.max_memory));
            asked.map_err(|error| error.to_string())
        }
        (Err(error), _) => Err(error.to_string()),
        (_, Err(error)) => Err(error.to_string()),
    };
    rung.runs = asked.is_ok();
    rung.reasons.extend(asked.err());
    rung
}

fn ask(recipe: &Recipe, backend: &dyn Backend, rung: &mut InspectedRung) -> Result<(), ModelError> {
    let Footprint { weights, states } = Model::footprint(recipe, backend)?;
    rung.device_bytes = Some(weights.saturating_add(states));
    rung.state_bytes = Some(states);
    Model::check(recipe, backend)
}
