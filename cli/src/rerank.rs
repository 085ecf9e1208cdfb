//! `rerank`: ranks documents by how well they answer a query.

use crate::args::{DeviceArgs, RerankArgs};
use crate::{load, output, text};
use anygpu::native::block_on;
use anygpu::{EngineOptions, Pooling};
use anygpu_openai::ranked;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::Path;

/// Runs `rerank`.
pub fn run(args: &RerankArgs, device: &DeviceArgs) -> Result<()> {
    // Files from before there was a pooling for rerankers name that of their vectors, or none.
    let (n_ctx, pooling) = (args.n_ctx, Some(Pooling::Rank));
    let options = EngineOptions { select: device.options(), n_ctx, pooling, ..EngineOptions::default() };
    let piped = args.documents.as_deref() == Some(Path::new("-"));
    if piped && args.query == "-" {
        bail!("the query and the documents cannot both be read from the standard input; give one of them by itself");
    }
    let query = text::given(Some(&args.query), None)?;
    let documents: Vec<String> = match &args.documents {
        Some(path) => text::given(piped.then_some("-"), Some(path))?.lines().map(Into::into).collect(),
        None => args.document.clone(),
    };
    let (name, engine) = load::engine(&args.model, &options)?;
    let mut embedder = engine.embedder().with_context(|| name)?;
    let mut scores = Vec::with_capacity(documents.len());
    for (index, document) in documents.iter().enumerate() {
        let tokens = engine.encode_pair(&query, document)?;
        let found = block_on(engine.embed(&mut embedder, &tokens)).with_context(|| format!("document {index}"))?;
        // Of several scores, the first says how well a document answers the query.
        scores.extend(found.values.first());
    }
    let ranked = ranked(&scores, args.top_n.map_or(documents.len(), NonZeroUsize::get));
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
