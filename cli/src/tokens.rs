//! `tokenize` and `detokenize`, which do not need a backend.

use crate::args::ModelArgs;
use crate::output;
use anygpu::native::block_on;
use anygpu::{Gguf, Tokenizer};
use anyhow::{Context, Result};
use serde_json::json;

/// Runs `tokenize`.
pub fn encode(model: &ModelArgs, text: &str, special: bool, json: bool) -> Result<()> {
    let tokens = tokenizer(model)?.encode(text, special, special);
    if json {
        output::json(&json!({ "tokens": tokens }))?;
    } else {
        let list: Vec<String> = tokens.iter().map(u32::to_string).collect();
        output::text(&format!("{}\n", list.join(",")))?;
    }
    Ok(())
}

fn tokenizer(model: &ModelArgs) -> Result<Tokenizer> {
    let source = model.open()?;
    let read = || -> Result<Tokenizer> { Ok(Tokenizer::from_metadata(&block_on(Gguf::read(&*source))?.metadata)?) };
    read().with_context(|| model.name())
}

/// Runs `detokenize`.
pub fn decode(model: &ModelArgs, tokens: &[u32], special: bool, json: bool) -> Result<()> {
    let tokenizer = tokenizer(model)?;
    if let Some(id) = tokens.iter().find(|id| **id as usize >= tokenizer.vocab_len()) {
        anyhow::bail!("token {id} is not in the vocabulary of {}; use ids of this model", tokenizer.vocab_len());
    }
    let text = tokenizer.decode(tokens, special);
    if json {
        output::json(&json!({ "text": text }))?;
    } else {
        output::text(&format!("{text}\n"))?;
    }
    Ok(())
}
