//! `tokenize` and `detokenize`. They need no backend.

use crate::args::ModelArgs;
use crate::load::{Opened, tokenizer};
use crate::output;
use anyhow::Result;
use serde_json::json;

/// Runs `tokenize`.
pub fn encode(model: &ModelArgs, text: &str, special: bool, json: bool) -> Result<()> {
    let tokens = tokenizer(&Opened::new(model)?.gguf)?.encode(text, special, special);
    if json {
        output::json(&json!({ "tokens": tokens }))?;
    } else {
        let list: Vec<String> = tokens.iter().map(u32::to_string).collect();
        output::text(&format!("{}\n", list.join(",")))?;
    }
    Ok(())
}

/// Runs `detokenize`.
pub fn decode(model: &ModelArgs, tokens: &[u32], special: bool, json: bool) -> Result<()> {
    let tokenizer = tokenizer(&Opened::new(model)?.gguf)?;
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
