//! Properties that hold for any input.

use std::sync::Arc;

use anygpu_model::fuzz;
use anygpu_model::gguf::{Metadata, Value};
use anygpu_model::tokenizer::Tokenizer;
use proptest::collection::vec;
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
}
