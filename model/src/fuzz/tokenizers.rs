//! Hostile tokenizers: tokens within tokens, empty and equal ones, scores that are NaN, arbitrary merges and maps of
//! normalization.

use super::random::Random;
use crate::gguf::writer::{Writer, string};

const TEXTS: &[&str] =
    &["a", "b", " ", "\u{2581}", "\u{120}", "<", "|", "e", "t", "\u{e4}", "\u{1f999}", "<0x61>", "", "\n", "0"];
const PRE: &[&str] = &[
    "default",
    "gpt-2",
    "llama-bpe",
    "qwen2",
    "smollm",
    "tekken",
    "deepseek-llm",
    "deepseek-v3",
    "afmoe",
    "tiny_aya",
    "jais-2",
    "nothing",
];

/// Makes a file with a hostile tokenizer; the same seed gives the same tokenizer.
pub(super) fn input(seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let count = [1, 7, 64, 300, 4000][random.below(5)];
    tokenizer(&mut random, count).bytes()
}

/// Makes a hostile tokenizer with so many tokens.
pub(super) fn tokenizer(random: &mut Random, count: usize) -> Writer {
    let model = random.pick(&["gpt2", "llama", "bert", "gemma4", "t5", "t5", "rwkv", "plamo2"]);
    let nested = random.pick(TEXTS);
    let special = random.below(3) == 0;
    let token = |i: usize, random: &mut Random| match random.below(4) {
        // Each token begins with the ones before it.
        0 => nested.repeat(i % 300),
        1 => random.pick(TEXTS).repeat(1 + random.below(8)),
        2 => [random.pick(TEXTS), random.pick(TEXTS), random.pick(TEXTS)].concat(),
        _ => ["<|im_end|>", "<s>", "</s>", "[UNK]", "time", "Once", "\u{120}up"][random.below(7)].to_owned(),
    };
    // PLaMo 2 needs a token for each byte, of which none is the first token.
    let bytes = if model == "plamo2" && count > 256 { 256 } else { 0 };
    let mut tokens: Vec<String> = (0..count - bytes).map(|i| token(i, random)).collect();
    tokens.extend((0..bytes).map(|byte| format!("<0x{byte:02X}>")));
    let kind = |i: usize, random: &mut Random| match (i >= count - bytes, special) {
        (true, _) => 6,
        (false, true) => 3 + random.below(2) as u32,
        (false, false) => random.below(8) as u32,
    };
    let kinds: Vec<u8> = (0..count).flat_map(|i| kind(i, random).to_le_bytes()).collect();
    // Unigram refuses scores that are not finite.
    let scores = [0.0, -1.0, -2.5, 1e38, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    let scores = if random.below(2) == 0 { &scores[..4] } else { &scores };
    let scores: Vec<u8> = (0..count).flat_map(|_| random.pick(scores).to_le_bytes()).collect();
    let texts: Vec<&str> = tokens.iter().map(|token| &**token).collect();
    let merges: Vec<String> = (0..random.below(count + 1))
        .map(|_| format!("{}{}{}", random.pick(&texts), random.pick(&[" ", "  ", ""]), random.pick(&texts)))
        .collect();
    let strings = |list: &[String]| list.iter().flat_map(|s| string(s.as_bytes())).collect::<Vec<u8>>();
    let mut file = Writer::default()
        .pair("tokenizer.ggml.model", 8, &string(model.as_bytes()))
        .pair("tokenizer.ggml.pre", 8, &string(random.pick(PRE).as_bytes()))
        .pair("general.name", 8, &string(random.pick(&["x", "phi-3"]).as_bytes()))
        .array("tokenizer.ggml.tokens", 8, count as u64, &strings(&tokens))
        .array("tokenizer.ggml.token_type", 5, count as u64, &kinds)
        .array("tokenizer.ggml.merges", 8, merges.len() as u64, &strings(&merges));
    if random.below(4) > 0 {
        file = file.array("tokenizer.ggml.scores", 6, count as u64, &scores);
    }
    for key in ["bos", "eos", "unknown", "eot", "seperator", "cls"] {
        if random.below(2) == 0 {
            let id = random.number(count) as u32;
            file = file.pair(&format!("tokenizer.ggml.{key}_token_id"), 4, &id.to_le_bytes());
        }
    }
    if random.below(4) == 0 {
        let template = random.pick(&["", "{query}", "{document}{query}", "{query}<s>{document}", "{{query}}"]);
        let template = template.repeat(1 + random.below(5));
        file = file.pair("tokenizer.chat_template.rerank", 8, &string(template.as_bytes()));
    }
    if random.below(3) > 0 {
        let map = charsmap(random);
        file = file.array("tokenizer.ggml.precompiled_charsmap", random.below(2) as u32, map.len() as u64, &map);
    }
    for key in ["add_bos_token", "add_eos_token", "add_space_prefix", "remove_extra_whitespaces"] {
        if random.below(2) == 0 {
            file = file.pair(&format!("tokenizer.ggml.{key}"), 7, &[random.below(2) as u8]);
        }
    }
    file
}

/// Makes a map of normalization: nodes that lead to each other by bytes that texts have, and short and long
/// replacements.
fn charsmap(random: &mut Random) -> Vec<u8> {
    let count = [0, 1, 300, 512][random.below(4)];
    let unit = |i: usize, random: &mut Random| match random.below(8) {
        0 => random.next() as u32,
        1 => 1 << 31 | random.below(300) as u32,
        // A node that its place's byte leads to, in one of the first two blocks.
        _ => ((random.below(2) << 8 | random.below(4)) as u32) << 10 | (random.below(2) as u32) << 8 | i as u32 & 0xFF,
    };
    let units: Vec<u8> = (0..count).flat_map(|i| unit(i, random).to_le_bytes()).collect();
    let length = units.len() as u32 + random.pick(&[0, 0, 0, 1, 4]);
    let texts = (0..random.below(400)).map(|_| random.pick(b" a\0\xE2\x96\x81\xFF"));
    length.to_le_bytes().into_iter().chain(units).chain(texts.collect::<Vec<u8>>()).chain([0]).collect()
}
