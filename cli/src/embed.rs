//! `embed`: prints the embeddings of texts, or their scores.

use crate::args::{DeviceArgs, EmbedArgs};
use crate::{load, output};
use anygpu::native::block_on;
use anygpu::{Embedding, EngineOptions, Pooling};
use anyhow::{Context, Result};
use serde_json::{Value, json};

/// Runs `embed`.
pub fn run(args: &EmbedArgs, device: &DeviceArgs) -> Result<()> {
    let EmbedArgs { n_ctx, pooling, .. } = *args;
    let options = EngineOptions { select: device.options(), n_ctx, pooling, ..EngineOptions::default() };
    let given = args.input.texts()?;
    let (name, engine) = load::engine(&args.model, &options)?;
    let texts: Vec<Vec<u32>> = match &args.input.tokens {
        Some(tokens) => vec![tokens.clone()],
        None => given.iter().map(|text| engine.encode(text)).collect::<Result<_, _>>()?,
    };
    let mut embedder = engine.embedder().with_context(|| name)?;
    let mut embeddings = Vec::new();
    for tokens in &texts {
        let mut embedding = block_on(engine.embed(&mut embedder, tokens))?;
        if let Some(width) = args.dimensions {
            embedding = embedding.shortened(width)?;
        }
        // Scores mean what they are.
        let raw = args.raw || embedder.pooling() == Pooling::Rank;
        embeddings.push(if raw { embedding } else { embedding.normalized() });
    }
    if args.json {
        let pooled = embedder.pooling() != Pooling::None;
        let mut values: Vec<Value> = embeddings.iter().map(|embedding| value(embedding, pooled)).collect();
        let pooling = embedder.pooling().name();
        let report = match (embedder.pooling(), values.len()) {
            (Pooling::Rank, 1) => json!({ "scores": values.swap_remove(0), "pooling": pooling }),
            (Pooling::Rank, _) => json!({ "scores": values, "pooling": pooling }),
            (_, 1) => json!({ "embedding": values.swap_remove(0), "pooling": pooling }),
            _ => json!({ "embeddings": values, "pooling": pooling }),
        };
        return Ok(output::json(&report)?);
    }
    for vector in embeddings.iter().flat_map(Embedding::vectors) {
        let numbers: Vec<String> = vector.iter().map(f32::to_string).collect();
        output::text(&format!("{}\n", numbers.join(" ")))?;
    }
    Ok(())
}

/// Returns the JSON of an embedding: a vector, or without pooling a list with a vector for each token.
fn value(embedding: &Embedding, pooled: bool) -> Value {
    if pooled { json!(embedding.values) } else { json!(embedding.vectors().collect::<Vec<_>>()) }
}
