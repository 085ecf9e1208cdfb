//! Whole models with hostile contents: those that can be loaded are run with the hostile tokenizer and template.

use super::random::Random;
use super::{structure, templates, tokenizers};
use crate::gguf::writer::{Writer, string};

/// Makes a model with the shapes and weights of a valid file; the same seed gives the same model.
pub(super) fn input(file: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let Some(mut parts) = structure::cut(file) else { return file.to_vec() };
    let words = vocabulary(&parts).unwrap_or(64);
    let template = templates::template(random.next());
    let tokenizer = tokenizers::tokenizer(&mut random, words);
    let name = |pair: &[u8]| pair[..8 + structure::length(pair)].to_vec();
    let new: Vec<_> = tokenizer.pairs.iter().map(|pair| name(pair)).collect();
    parts.pairs.retain(|pair| !new.contains(&name(pair)));
    let mut all = Writer { pairs: [parts.pairs, tokenizer.pairs].concat(), ..parts };
    if random.below(4) > 0 {
        all = all.pair("tokenizer.chat_template", structure::STRING, &string(template.as_bytes()));
    }
    if random.below(4) == 0 {
        structure::change(&mut all, &mut random);
    }
    all.bytes()
}

/// Returns the vocabulary size of a model's embeddings.
fn vocabulary(parts: &Writer) -> Option<usize> {
    let name = string(b"token_embd.weight");
    let info = parts.infos.iter().find(|info| info.starts_with(&name))?;
    // The name is followed by the number of dimensions and the first dimension.
    let rows = info.get(name.len() + 4 + 8..)?.first_chunk()?;
    Some(u64::from_le_bytes(*rows).min(4096) as usize)
}
