//! What a fuzzer needs: valid files to begin with, a way to damage them, and the code that must survive.

use crate::chat::{ChatTemplate, Message};
use crate::gguf::writer::{Writer, string};
use crate::gguf::{FromValue, Gguf, StringArray};
use crate::tokenizer::Tokenizer;

/// Feeds bytes through everything that a file's content reaches before weights are loaded. Whatever the bytes are, this
/// must return soon, and without a panic.
pub fn fuzz_one(bytes: &[u8]) {
    let Ok(gguf) = Gguf::from_bytes(bytes) else { return };
    for tensor in &gguf.tensors {
        let end = tensor.offset.checked_add(tensor.bytes);
        assert!(end.is_some_and(|end| end <= bytes.len() as u64), "{} lies outside the file", tensor.name);
        assert!(gguf.tensor(&tensor.name).is_some());
    }
    for (key, value) in gguf.metadata.iter() {
        assert!(!value.to_string().is_empty());
        let _ = (gguf.metadata.require::<u32>(key), gguf.metadata.require::<f32>(key));
        let _ = (Vec::<u32>::from_value(value), Vec::<f32>::from_value(value), <&str>::from_value(value));
        if let Ok(strings) = gguf.metadata.require::<&std::sync::Arc<StringArray>>(key) {
            assert_eq!(strings.iter().count(), strings.len());
        }
    }
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
    let (mut stream, mut text) = (tokenizer.stream(), String::new());
    for id in 0..tokenizer.vocab_len().min(1000) as u32 + 2 {
        stream.push(&tokenizer, id, &mut text);
    }
    stream.finish(&mut text);
    if let Ok(template) = &template {
        let _ = template.encode(&tokenizer, &messages[1..2], false);
    }
}

/// Small valid files: between them every value type, both tokenizers, templates and tensors.
pub fn seeds() -> Vec<Vec<u8>> {
    let strings = |list: &[&str]| list.iter().flat_map(|s| string(s.as_bytes())).collect::<Vec<u8>>();
    let ints = |list: &[i32]| list.iter().flat_map(|i| i.to_le_bytes()).collect::<Vec<u8>>();
    let floats = |list: &[f32]| list.iter().flat_map(|f| f.to_le_bytes()).collect::<Vec<u8>>();

    let tokens = ["<|im_end|>", "a", "b", "ab", "\u{120}", "\u{120}ab", "t", "i", "m", "e", "O", "n", "c", "2", "0"];
    let bpe = Writer::default()
        .pair("general.architecture", 8, &string(b"gpt2"))
        .pair("general.alignment", 4, &32u32.to_le_bytes())
        .pair("tokenizer.ggml.model", 8, &string(b"gpt2"))
        .pair("tokenizer.ggml.pre", 8, &string(b"gpt-2"))
        .array("tokenizer.ggml.tokens", 8, 15, &strings(&tokens))
        .array("tokenizer.ggml.token_type", 5, 15, &ints(&[3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4]))
        .array("tokenizer.ggml.merges", 8, 3, &strings(&["a b", "\u{120} ab", "t i"]))
        .pair("tokenizer.ggml.eos_token_id", 4, &0u32.to_le_bytes())
        .pair("tokenizer.ggml.add_bos_token", 7, &[0])
        .pair(
            "tokenizer.chat_template",
            8,
            &string(
                b"{%- for m in messages[::-1] %}{% if loop.first %}{{ m|tojson }}{% endif %}\
                  {{ m['role'].strip() + '\\n' + m.content | trim }}{% endfor %}{{ bos_token }}",
            ),
        )
        .tensor("token_embd.weight", &[32, 3], 2, 0)
        .tensor("output_norm.weight", &[8], 0, 64)
        .data(96);

    let spm = Writer::default()
        .pair("general.name", 8, &string(b"Phi-3"))
        .pair("tokenizer.ggml.model", 8, &string(b"llama"))
        .array("tokenizer.ggml.tokens", 8, 7, &strings(&["<unk>", "<s>", "</s>", "\u{2581}", "a", "ab", "<0x62>"]))
        .array("tokenizer.ggml.scores", 6, 7, &floats(&[0.0, 0.0, 0.0, -1.0, -2.0, -3.0, 0.0]))
        .array("tokenizer.ggml.token_type", 5, 7, &ints(&[2, 3, 3, 1, 1, 1, 6]))
        .pair("a.i64", 11, &(-1i64).to_le_bytes())
        .pair("a.f64", 12, &1f64.to_le_bytes())
        .array("a.u16", 2, 2, &[1, 0, 2, 0])
        .array("a.i64s", 11, 1, &[255; 8])
        .array("a.bools", 7, 2, &[0, 1])
        .array("a.f64s", 12, 1, &[0; 8]);
    vec![bpe.bytes(), spm.bytes()]
}

/// A damaged copy; the same seed gives the same damage.
pub fn mutate(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut out = bytes.to_vec();
    for _ in 0..1 + random.below(3) {
        let at = random.below(out.len());
        let run = random.below(24).min(out.len() - at);
        match random.below(16) {
            0 => out.truncate(at),
            1 => drop(out.drain(at..at + run)),
            2 => {
                let copy = out[at..at + run].to_vec();
                let to = random.below(out.len());
                out.splice(to..to, copy);
            }
            3..6 => {
                let value = random.number(out.len()).to_le_bytes();
                let width = [1, 2, 4, 8][random.below(4)].min(out.len() - at);
                out[at..at + width].copy_from_slice(&value[..width]);
            }
            6..11 => {
                if let Some(byte) = out.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            _ => {
                if let Some(byte) = out.get_mut(at) {
                    *byte = random.next() as u8;
                }
            }
        }
    }
    out
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, or 0.
    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// A number of the kind that breaks readers.
    fn number(&mut self, len: usize) -> u64 {
        let edges = [0, 1, len as u64, u64::MAX, i64::MAX as u64, u32::MAX.into(), 1 << 31, 1 << 20];
        let edge = edges[self.below(edges.len())];
        edge.wrapping_add(self.below(3) as u64).wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_valid_and_mutations_survive() {
        for seed in seeds() {
            let gguf = Gguf::from_bytes(&seed).unwrap();
            Tokenizer::from_metadata(&gguf.metadata).unwrap();
            ChatTemplate::from_metadata(&gguf.metadata).unwrap().render(&[Message::new("user", "U")], true).unwrap();
            fuzz_one(&seed);
            for i in 0..3000 {
                fuzz_one(&mutate(&seed, i));
            }
        }
    }
}
