//! Text: conversations become prompts, prompts tokens, and tokens answers.

pub mod chat;
pub mod tokenizer;
