//! Properties that hold for any input.

use std::sync::Arc;

use anygpu_model::fuzz;
use anygpu_model::gguf::{Metadata, Value};
use anygpu_model::tokenizer::{Tokenizer, TokenizerError};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::Index;

/// Derives the GPT-2 byte alphabet independently, as a check.
fn alphabet() -> Vec<String> {
    let printable = |b: u32| matches!(b, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let mut others = 0x100u32..;
    let code = |b| if printable(b) { b } else { others.next().unwrap() };
    (0..256).map(code).map(|c| char::from_u32(c).unwrap().to_string()).collect()
}

/// Makes a vocabulary of all bytes and of the results of `merges`.
fn bpe(merges: &[(String, String)]) -> Tokenizer {
    let mut tokens = alphabet();
    tokens.extend(merges.iter().map(|(l, r)| format!("{l}{r}")));
    let mut m = Metadata::default();
    m.insert("tokenizer.ggml.model", Value::String("gpt2".into()));
    m.insert("tokenizer.ggml.pre", Value::String("smollm".into()));
    m.insert("tokenizer.ggml.tokens", Value::Strings(Arc::new(tokens.iter().collect())));
    let lines = merges.iter().map(|(l, r)| format!("{l} {r}"));
    m.insert("tokenizer.ggml.merges", Value::Strings(Arc::new(lines.collect())));
    Tokenizer::from_metadata(&m).unwrap()
}

/// Merges by searching for the best pair repeatedly, as in the definition.
fn merge_plainly(merges: &[(String, String)], word: &str) -> Vec<String> {
    let mut parts: Vec<String> = word.chars().map(String::from).collect();
    loop {
        let rank = |w: &[String]| merges.iter().position(|(l, r)| *l == w[0] && *r == w[1]);
        let best = parts.windows(2).enumerate().filter_map(|(i, w)| Some((rank(w)?, i))).min();
        let Some((_, at)) = best else { return parts };
        let right = parts.remove(at + 1);
        parts[at] += &right;
    }
}

/// Makes a tokenizer from texts, scores and kinds.
fn tokenizer(model: &str, tokens: &[(String, f32, i32)], more: &[(&str, Value)]) -> Result<Tokenizer, TokenizerError> {
    let mut m = Metadata::default();
    m.insert("tokenizer.ggml.model", Value::String(model.into()));
    m.insert("tokenizer.ggml.tokens", Value::Strings(Arc::new(tokens.iter().map(|token| &token.0).collect())));
    m.insert("tokenizer.ggml.scores", Value::Floats(tokens.iter().map(|token| token.1).collect()));
    m.insert("tokenizer.ggml.token_type", Value::Ints(tokens.iter().map(|token| token.2).collect()));
    for (key, value) in more {
        m.insert(&format!("tokenizer.ggml.{key}"), value.clone());
    }
    Tokenizer::from_metadata(&m)
}

/// Returns the highest sum of scores of all ways to split a text into tokens.
fn best_sum(tokens: &[(String, f32, i32)], text: &str) -> Option<f64> {
    if text.is_empty() {
        return Some(0.0);
    }
    let after = |(token, score, _): &(String, f32, i32)| {
        Some(f64::from(*score) + best_sum(tokens, text.strip_prefix(&token[..])?)?)
    };
    tokens.iter().filter_map(after).max_by(f64::total_cmp)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_never_panic(which: Index, changes in vec((any::<Index>(), any::<u8>()), 1..12), cut: Option<Index>) {
        let mut bytes = which.get(&fuzz::seeds()).clone();
        for (at, value) in changes {
            *at.get_mut(&mut bytes) = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        fuzz::fuzz_one(&bytes);
    }

    #[test]
    fn any_text_survives_the_bytes(text: String) {
        let tokenizer = bpe(&[]);
        let ids = tokenizer.encode(&text, true, true);
        prop_assert_eq!(ids.len(), text.len());
        prop_assert_eq!(tokenizer.decode(&ids, false), text.clone());
        let (mut stream, mut streamed) = (tokenizer.stream(), String::new());
        ids.into_iter().for_each(|id| stream.push(&tokenizer, id, &mut streamed));
        prop_assert_eq!(streamed, text);
    }

    #[test]
    fn the_queue_merges_as_defined(pairs in vec(("[abc]{1,3}", "[abc]{1,3}"), 1..24), word in "[abc]{1,40}") {
        let mut merges: Vec<(String, String)> = Vec::new();
        for pair in pairs {
            if !merges.contains(&pair) {
                merges.push(pair);
            }
        }
        let tokenizer = bpe(&merges);
        let ids = tokenizer.encode(&word, false, false);
        let texts: Vec<&str> = ids.iter().map(|&id| tokenizer.token_text(id)).collect();
        prop_assert_eq!(texts, merge_plainly(&merges, &word));
    }

    /// Scores are eighths, whose sums are exact.
    #[test]
    fn no_other_tokens_have_a_better_sum(
        longer in btree_map("[abcé]{2,4}", -80i32..0, 0..12), scores in vec(-80i32..0, 4), text in "[abcé]{0,9}"
    ) {
        let chars = ["a", "b", "c", "é"].map(str::to_owned).into_iter().zip(scores);
        let mut tokens = vec![("<unk>".to_owned(), 0.0, 2)];
        tokens.extend(chars.chain(longer).map(|(text, score)| (text, score as f32 / 8.0, 1)));
        let best = best_sum(&tokens[1..], &text);
        // Costs of PLaMo 2 have the opposite sign. Its first token is not that of a byte.
        let mut with_bytes = tokens.clone();
        with_bytes.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), 0.0, 6)));
        for t in [
            tokenizer("t5", &tokens, &[("unknown_token_id", Value::Uint(0))]).unwrap(),
            tokenizer("plamo2", &with_bytes, &[]).unwrap(),
        ] {
            let ids = t.encode(&text, false, false);
            let sum = ids.iter().map(|id| f64::from(with_bytes[*id as usize].1)).sum();
            prop_assert_eq!(Some(sum), best);
            prop_assert_eq!(t.decode(&ids, false), text.clone());
        }
    }

    #[test]
    fn any_text_survives_tokens_of_its_bytes(texts in vec("[ -~é中\n\t]{1,4}", 0..20), text: String) {
        let mut tokens: Vec<_> = (0..256).map(|byte| (format!("\\x{byte:02x}"), 0.0, 1)).collect();
        tokens.extend(texts.iter().map(|text| (text.replace('\\', "\\\\"), 0.0, 1)));
        let t = tokenizer("rwkv", &tokens, &[]).unwrap();
        prop_assert_eq!(t.decode(&t.encode(&text, true, false), false), text.clone());
        let mut tokens: Vec<_> = (0..256).map(|byte| (format!("<0x{byte:02X}>"), 0.0, 6)).collect();
        tokens.insert(0, ("<unk>".to_owned(), 0.0, 2));
        tokens.extend(texts.into_iter().map(|text| (text, -1.0, 1)));
        let t = tokenizer("plamo2", &tokens, &[]).unwrap();
        prop_assert_eq!(t.decode(&t.encode(&text, true, false), false), text.trim_start_matches('\u{FEFF}'));
    }

    /// Bytes as a map of normalization are refused, or bound what a text becomes.
    #[test]
    fn any_map_of_normalization_is_survived(
        units in vec((0u32..4, 0u32..512, 0u32..4), 256..600), texts in vec(0u8..4, 0..40), text in "[\0-\u{9}a ]{0,30}"
    ) {
        let units = units.into_iter().map(|(leaf, offset, label)| offset << 10 | (leaf & 1) << 8 | label | (leaf >> 1) << 31);
        let units: Vec<u8> = units.flat_map(u32::to_le_bytes).collect();
        let bytes = (units.len() as u32).to_le_bytes().into_iter().chain(units).chain(texts).chain([0]);
        let map = Value::Ints(bytes.map(i32::from).collect());
        let tokens = [("<unk>", 2), ("\u{1}", 1), ("\u{1}\u{2}", 1), ("a", 1)];
        let tokens = tokens.map(|(text, kind)| (text.to_owned(), -1.0, kind));
        if let Ok(t) = tokenizer("t5", &tokens, &[("unknown_token_id", Value::Uint(0)), ("precompiled_charsmap", map)]) {
            prop_assert!(t.encode(&text, false, false).len() <= 256 * text.len());
        }
    }
}
