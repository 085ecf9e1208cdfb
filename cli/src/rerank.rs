//! `rerank`: ranks documents by how well they answer a query.

use crate::args::{DeviceArgs, RerankArgs};
use crate::{load, output, text};
use anygpu::native::block_on;
use anygpu::{EngineError, EngineOptions};
use anyhow::{Context, Result};
use serde_json::{Value, json};

/// Runs `rerank`.
pub fn run(args: &RerankArgs, device: &DeviceArgs) -> Result<()> {
    let options = EngineOptions { select: device.options(), n_ctx: args.n_ctx, ..EngineOptions::default() };
    let query = text::given(Some(&args.query), None)?;
    let documents = match &args.documents {
        Some(path) => text::given(None, Some(path))?.lines().map(Into::into).collect(),
        None => args.document.clone(),
    };
    let (name, engine) = load::engine(&args.model, &options)?;
    engine.model().recipe().check_pooled(true).map_err(EngineError::from).with_context(|| name.clone())?;
    let mut embedder = engine.embedder().with_context(|| name)?;
    let mut ranked: Vec<(usize, f32)> = Vec::with_capacity(documents.len());
    for (index, document) in documents.iter().enumerate() {
        let tokens = engine.encode_pair(&query, document)?;
        let scores = block_on(engine.embed(&mut embedder, &tokens)).with_context(|| format!("document {index}"))?;
        // Of several scores, the first says how well a document answers the query.
        ranked.extend(scores.values.first().map(|score| (index, *score)));
    }
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked.truncate(args.top_n.unwrap_or(documents.len()));
    if args.json {
        let result = |(index, score): &(usize, f32)| json!({ "index": index, "relevance_score": score });
        let results: Vec<Value> = ranked.iter().map(result).collect();
        return Ok(output::json(&json!({ "results": results }))?);
    }
    for (index, score) in ranked {
        output::text(&format!("{score:>12.6}  {}\n", documents[index]))?;
    }
    Ok(())
}
