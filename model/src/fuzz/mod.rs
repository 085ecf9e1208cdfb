//! Fuzzing inputs: valid seed files, mutations of them, hostile files, and the code that must survive them.

mod bits;
mod language;
mod models;
mod random;
mod seeds;
mod sessions;
mod structure;
mod templates;
mod tokenizers;

use crate::arch::Recipe;
use crate::gguf::{FromValue, Gguf, StringArray};
use crate::runtime::Snapshot;
use crate::text::chat::{ChatTemplate, Message};
use crate::text::tokenizer::Tokenizer;

pub use seeds::seeds;
pub use templates::template;

/// A kind of input. Every input is a file, so findings can be passed to any command.
pub struct Target {
    /// Name of the target.
    pub name: &'static str,
    /// Makes the input with a number, possibly from valid files. The same number gives the same file.
    pub input: fn(&[Vec<u8>], u64) -> Vec<u8>,
}

/// All kinds of inputs.
pub const TARGETS: [Target; 6] = [
    Target { name: "bits", input: |files, number| bits::mutate(chosen(files, number), number) },
    Target { name: "structure", input: |files, number| structure::input(chosen(files, number), number) },
    Target { name: "template", input: |_, number| templates::input(number) },
    Target { name: "tokenizer", input: |_, number| tokenizers::input(number) },
    Target { name: "session", input: |_, number| sessions::input(number) },
    Target { name: "model", input: |files, number| models::input(chosen(files, number), number) },
];

fn chosen(files: &[Vec<u8>], number: u64) -> &[u8] {
    let at = (number % files.len().max(1) as u64) as usize;
    files.get(at).map_or(&[], |file| file)
}

/// Number of repetitions in a text in which many tokens begin at each byte.
const REPEATS: usize = 2000;

/// Most tokens for each byte of a text: a map of normalization may replace it by so many bytes.
const MOST_TOKENS: usize = 256;

/// Runs bytes through all code that a file's content reaches before weights are loaded. Whatever the bytes are, this
/// must return soon and must not panic.
pub fn fuzz_one(bytes: &[u8]) {
    if let Ok(snapshot) = Snapshot::from_bytes(bytes) {
        let header = snapshot.header();
        assert_eq!(snapshot.tokens().len(), header.tokens - header.from);
        assert_eq!(Snapshot::from_bytes(&snapshot.to_bytes()).as_ref(), Ok(&snapshot));
    }
    let Ok(gguf) = Gguf::from_bytes(bytes) else { return };
    for tensor in &gguf.tensors {
        let end = tensor.offset.checked_add(tensor.bytes);
        assert!(end.is_some_and(|end| end <= bytes.len() as u64), "{} lies outside the file", tensor.name);
        assert!(gguf.tensor(&tensor.name).is_some());
    }
    for (key, value) in gguf.metadata.iter() {
        assert!((1..200).contains(&value.to_string().chars().count()));
        let _ = (gguf.metadata.require::<u32>(key), gguf.metadata.require::<f32>(key));
        let _ = (Vec::<u32>::from_value(value), Vec::<f32>::from_value(value), <&str>::from_value(value));
        if let Ok(strings) = gguf.metadata.require::<&std::sync::Arc<StringArray>>(key) {
            assert_eq!(strings.iter().count(), strings.len());
        }
    }
    let _ = Recipe::new(&gguf, Some(64)).and_then(|recipe| recipe.check_memory(None));
    let template = ChatTemplate::from_metadata(&gguf.metadata);
    let messages = ["system", "user", "assistant", "user"].map(|role| Message::new(role, "Once <s>upon\n a time"));
    if let Ok(template) = &template {
        let _ = template.render(&messages, true);
    }
    let Ok(tokenizer) = Tokenizer::from_metadata(&gguf.metadata) else { return };
    for special in [false, true] {
        let ids =
            tokenizer.encode("Once upon  a time,\n\nit's 2024 <s><|im_end|>\u{1f999} \u{e4}bab ab", special, special);
        assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocab_len()));
        tokenizer.decode(&ids, special);
    }
    let ids = tokenizer.encode_pair("Once {document} upon", "a time {query}<s>");
    assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocab_len()));
    for text in ["a", "\u{1f999}", "<|im_end|>", " \n"] {
        let text = text.repeat(REPEATS);
        let ids = tokenizer.encode(&text, true, true);
        assert!(ids.len() <= MOST_TOKENS * text.len() + 2);
    }
    let (mut stream, mut text) = (tokenizer.stream(), String::new());
    for id in 0..tokenizer.vocab_len().min(1000) as u32 + 2 {
        stream.push(&tokenizer, id, &mut text);
    }
    stream.finish(&mut text);
    if let Ok(template) = &template {
        let _ = template.encode(&tokenizer, &messages[1..2], false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_valid_and_damage_is_survived() {
        let files = seeds();
        for seed in &files {
            let gguf = Gguf::from_bytes(seed).unwrap();
            Tokenizer::from_metadata(&gguf.metadata).unwrap();
            ChatTemplate::from_metadata(&gguf.metadata).unwrap().render(&[Message::new("user", "U")], true).unwrap();
            fuzz_one(seed);
        }
        for number in 0..800 {
            for target in TARGETS.iter().filter(|target| target.name != "template") {
                fuzz_one(&(target.input)(&files, number));
            }
        }
    }
}
