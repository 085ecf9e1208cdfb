//! Helpers that several tests share.
#![allow(dead_code, reason = "a test need not use all of it")]

pub mod server;

use std::path::PathBuf;

/// Writes a copy of the small model with a chat template, which becomes its first metadata key.
pub fn with_template(name: &str, template: &str) -> PathBuf {
    let string = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let key = [&string("tokenizer.chat_template")[..], &8u32.to_le_bytes()].concat();
    // Tensors keep their alignment if the new pair's length is a multiple of it.
    let padding = (32 - (key.len() + 8 + template.len()) % 32) % 32;
    let pair = [key, string(&format!("{template}{}", " ".repeat(padding)))].concat();
    let mut file = include_bytes!("../../../models/gab-q4_0.gguf").to_vec();
    let pairs = u64::from_le_bytes(file[16..24].try_into().unwrap());
    file[16..24].copy_from_slice(&(pairs + 1).to_le_bytes());
    file.splice(24..24, pair);
    let path = std::env::temp_dir().join(format!("anygpu-{name}-{}.gguf", std::process::id()));
    std::fs::write(&path, &file).unwrap();
    path
}
