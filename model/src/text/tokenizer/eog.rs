//! End-of-generation tokens.

use backend_api::sort_by_key;

use super::TokenizerError;
use super::vocab::{TokenKind, Vocab};
use crate::gguf::Metadata;

/// Metadata keys of such tokens.
const KEYS: &[&str] = &[
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.eom_token_id",
    "tokenizer.ggml.fim_pad_token_id",
    "tokenizer.ggml.fim_rep_token_id",
    "tokenizer.ggml.fim_sep_token_id",
];

/// Texts of such tokens: many files name only one of several.
const TEXTS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "[e~[",
    "<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>",
    // Fill-in-the-middle: padding, repository and file separators.
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
];

/// Pairs of tokens that end turns. If a vocabulary has one of these pairs, `<|end|>` is only a separator in it.
const STRONGER_THAN_END: &[[&str; 2]] = &[["<|return|>", "<|call|>"], ["<|calls|>", "<|flush|>"]];

/// Returns the tokens that end a generation, in ascending order: those that the metadata names, and control tokens with
/// a known text.
///
/// A token of another kind is ordinary text, whatever it looks like: `</s>` is HTML to Gemma and Qwen. Its text counts
/// only if the file does not say which tokens end a turn: it has no kinds, its chat template writes the token, or
/// nothing else ends a text. Such tokens become control tokens.
pub(super) fn find(metadata: &Metadata, vocab: &mut Vocab, eos: Option<u32>) -> Result<Vec<u32>, TokenizerError> {
    let mut ids: Vec<u32> = eos.into_iter().collect();
    for key in KEYS {
        ids.extend(metadata.get::<u32>(key)?.filter(|&id| (id as usize) < vocab.len()));
    }
    let known: Vec<u32> = TEXTS.iter().filter_map(|text| vocab.id(text)).collect();
    ids.extend(known.iter().filter(|id| vocab.kind(**id) == TokenKind::Control));
    let all = !vocab.has_kinds() || ids.is_empty();
    let template = metadata.get::<&str>("tokenizer.chat_template")?.unwrap_or_default();
    for id in known {
        if all || template.contains(vocab.text(id)) {
            vocab.set_kind(id, TokenKind::Control);
            ids.push(id);
        }
    }
    if STRONGER_THAN_END.iter().any(|pair| pair.iter().all(|text| vocab.id(text).is_some())) {
        let end = vocab.id("<|end|>");
        ids.retain(|&id| Some(id) != end);
    }
    sort_by_key(&mut ids, |id| u64::from(*id));
    ids.dedup();
    Ok(ids)
}
