//! Description of a file, and of the resources to run it here. No weights are loaded.

use backend_api::Backend;
use backend_api::run::Host;
use model::{ByteSource, Footprint, Gguf, Model, ModelError, Recipe};
use serde::Serialize;

use crate::engine::EngineOptions;
use crate::error::EngineError;
use crate::ladder::{Candidate, LADDER};

/// A file, and the rungs of this machine.
#[derive(Debug, Clone, Serialize)]
pub struct Inspection {
    /// The architecture that the file names.
    pub architecture: String,
    /// The model's own name, if the file has it.
    pub name: Option<String>,
    /// Numbers in all tensors.
    pub parameters: u64,
    /// Tokens of the training context, if the file says.
    pub n_ctx_train: Option<u64>,
    /// Tokens of the context that states are counted for; none if the architecture cannot be read.
    pub n_ctx: Option<usize>,
    /// The tokenizer and its variant, as the file names them.
    pub tokenizer: Option<String>,
    /// All tensors, in the order of the file.
    pub tensors: Vec<InspectedTensor>,
    /// All ways to run it, best first.
    pub rungs: Vec<InspectedRung>,
}

/// A tensor of a file.
#[derive(Debug, Clone, Serialize)]
pub struct InspectedTensor {
    /// Its name.
    pub name: String,
    /// Row-major.
    pub shape: Vec<usize>,
    /// How its elements are stored.
    pub format: &'static str,
    /// Bytes in the file.
    pub bytes: u64,
}

/// A way to run a file.
#[derive(Debug, Clone, Serialize)]
pub struct InspectedRung {
    /// Backend and variant.
    pub name: &'static str,
    /// Whether the backend is there and has all operators of the model. Memory is not asked for.
    pub runs: bool,
    /// Why it does not.
    pub reasons: Vec<String>,
    /// Device memory of weights and states together; programs take some more.
    ///
    /// *Units*: bytes.
    pub device_bytes: Option<u64>,
    /// Device memory of the states of one text as long as the context.
    ///
    /// *Units*: bytes.
    pub state_bytes: Option<u64>,
}

/// Reads a file's header, opens what backends there are, and asks each about the model.
///
/// *Errors*: the file is not GGUF, or malformed. What cannot run is no error: the rungs say so.
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
    for candidate in LADDER {
        rungs.push(rung(candidate, &recipe, options).await);
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
