//! Tests with small, hand-made vocabularies.

use std::sync::Arc;

use super::*;
use crate::gguf::Value;

/// Makes the metadata of a vocabulary of (text, score, type).
fn metadata(model: &str, tokens: &[(&str, f32, i32)]) -> Metadata {
    let mut m = Metadata::default();
    m.insert("tokenizer.ggml.model", Value::String(model.into()));
    m.insert("tokenizer.ggml.tokens", Value::Strings(Arc::new(tokens.iter().map(|t| t.0).collect())));
    m.insert("tokenizer.ggml.scores", Value::Floats(tokens.iter().map(|t| t.1).collect()));
    m.insert("tokenizer.ggml.token_type", Value::Ints(tokens.iter().map(|t| t.2).collect()));
    m
}

const SPM: &[(&str, f32, i32)] = &[
    ("<unk>", 0.0, 2),
    ("<s>", 0.0, 3),
    ("</s>", 0.0, 3),
    ("<0xC3>", 0.0, 6),
    ("<0xA4>", 0.0, 6),
    ("\u{2581}", -9.0, 1),
    ("a", -9.0, 1),
    ("b", -9.0, 1),
    ("ab", -1.0, 1),
    ("ba", -1.0, 1),
    ("\u{2581}ab", -0.5, 1),
    ("<|end|>", 0.0, 4),
    ("<tag>", 0.0, 4),
    ("aba", -3.0, 1),
];

fn spm(name: &str) -> Tokenizer {
    let mut m = metadata("llama", SPM);
    m.insert("general.name", Value::String(name.into()));
    Tokenizer::from_metadata(&m).unwrap()
}

#[test]
fn sentencepiece_merges_by_score_and_falls_back_to_bytes() {
    let t = spm("test");
    let raw = |text: &str| t.encode(text, false, false);
    assert_eq!(raw("ab"), [10]);
    assert_eq!(raw("bab"), [5, 9, 7], "of equal scores the left pair merges first");
    assert_eq!(raw("aab"), [5, 6, 8]);
    assert_eq!(raw("ä"), [5, 3, 4], "UTF-8 bytes");
    assert_eq!(raw("z"), [5, 0], "no byte token: unknown");
    assert!(raw("").is_empty());
    assert_eq!(t.encode("ab", true, false), [1, 10]);
    assert_eq!(t.decode(&[10, 5, 3, 4], false), "ab ä");
    assert_eq!(t.decode(&[1, 10], false), " ab", "only the first token loses its space");
    assert_eq!(t.decode(&[1, 8, 2], true), "<s>ab</s>");
}

#[test]
fn characters_merge_by_rank_and_newlines_are_taken_whole() {
    let tokens = [
        ("<unk>", 0.0, 2),
        ("<bos>", 0.0, 3),
        ("\u{2581}", 0.0, 1),
        ("a", 0.0, 1),
        ("b", 0.0, 1),
        ("ab", 0.0, 1),
        ("\u{2581}ab", 0.0, 1),
        ("\n", 0.0, 1),
        ("\n\n\n", 0.0, 1),
        ("<0xC3>", 0.0, 6),
        ("<0xA4>", 0.0, 6),
        ("aba", 0.0, 1),
    ];
    let mut m = metadata("gemma4", &tokens);
    // The last merge passes through a text that is not a token.
    let merges = ["a b", "\u{2581} ab", "b b", "a bb"];
    m.insert("tokenizer.ggml.merges", Value::Strings(Arc::new(merges.into_iter().collect())));
    m.insert("tokenizer.ggml.bos_token_id", Value::Uint(1));
    m.insert("tokenizer.ggml.unknown_token_id", Value::Uint(0));
    let t = Tokenizer::from_metadata(&m).unwrap();
    let raw = |text: &str| t.encode(text, false, false);
    assert_eq!(raw("ab ab"), [5, 6], "spaces are characters like others");
    assert_eq!(raw("aba"), [5, 3], "a token without a merge is not made");
    assert_eq!(raw("bb"), [4, 4], "what merging passes through is spelled by its characters");
    assert_eq!(raw("a\n\n\na"), [3, 8, 3]);
    assert_eq!(raw("a\n\na"), [3, 7, 7, 3], "no token for two newlines");
    assert_eq!(raw("ä"), [9, 10], "UTF-8 bytes");
    assert_eq!(raw("é"), [9, 0], "no byte token: unknown");
    assert_eq!(t.encode("ab", true, false), [1, 5]);
    assert_eq!(t.decode(&[5, 6, 8, 9, 10], false), "ab ab\n\n\nä");
}

#[test]
fn sentencepiece_splits_at_special_tokens() {
    let t = spm("test");
    assert_eq!(t.encode("ab<tag>ab", false, false), [10, 12, 10], "user-defined tokens always count");
    assert_eq!(t.encode("</s>ab", false, true), [2, 10]);
    assert!(!t.encode("</s>ab", false, false).contains(&2));
    assert_eq!(t.encode("ab<|end|>ab", false, false), [10, 11, 10]);
}

/// Checks files with tokens of each kind that look like end tokens, and which of them end a text.
#[test]
fn what_ends_a_text_is_what_the_file_says() {
    let tokens = [
        ("<unk>", 0.0, 2),
        ("a", 0.0, 1),
        ("</s>", 0.0, 4),
        ("<|end|>", 0.0, 4),
        ("<EOT>", 0.0, 1),
        ("<|eot_id|>", 0.0, 3),
        ("<|eom_id|>", 0.0, 3),
    ];
    let file = |tokens: &[(&str, f32, i32)], more: &[(&str, Value)]| {
        let mut m = metadata("gpt2", tokens);
        m.insert("tokenizer.ggml.merges", Value::Strings(Arc::new(["a b"].into_iter().collect())));
        for (key, value) in more {
            m.insert(&format!("tokenizer.{key}"), value.clone());
        }
        Tokenizer::from_metadata(&m).unwrap()
    };
    let t = file(&tokens, &[]);
    assert_eq!(t.eog(), [5, 6], "control tokens of a known text");
    assert_eq!([2, 3, 4].map(|id| t.token_kind(id)), [TokenKind::User, TokenKind::User, TokenKind::Normal]);
    assert_eq!(t.decode(&[1, 2, 3, 4, 5], false), "a</s><|end|><EOT>");
    assert_eq!(t.encode("a</s>", false, false), [1, 2]);
    let named = file(&tokens, &[("ggml.eos_token_id", Value::Uint(2)), ("ggml.eot_token_id", Value::Uint(4))]);
    assert_eq!(named.eog(), [2, 4, 5, 6], "those that are named, whatever they are");
    let written = file(&tokens, &[("chat_template", Value::String("{{ messages }}<|end|>".into()))]);
    assert_eq!(written.eog(), [3, 5, 6], "one that the template writes");
    assert_eq!(written.token_kind(3), TokenKind::Control);
    let silent = file(&tokens[..5], &[]);
    assert_eq!(silent.eog(), [2, 3, 4], "the file says nothing");
    assert!(silent.eog().iter().all(|id| silent.token_kind(*id) == TokenKind::Control));
    let harmony = [&tokens[..], &[("<|return|>", 0.0, 3), ("<|call|>", 0.0, 3)]].concat();
    assert_eq!(file(&harmony, &[("chat_template", Value::String("<|end|>".into()))]).eog(), [5, 6, 7, 8]);
}

#[test]
fn without_kinds_texts_say_what_ends_a_text() {
    let mut m = Metadata::default();
    for (key, value) in metadata("llama", SPM).iter().filter(|(key, _)| !key.ends_with("token_type")) {
        m.insert(key, value.clone());
    }
    let t = Tokenizer::from_metadata(&m).unwrap();
    assert_eq!(t.eog(), [2, 11]);
    assert_eq!(t.token_kind(11), TokenKind::Control);
}

#[test]
fn phi3_strips_after_special_tokens() {
    let t = spm("Phi-3 mini");
    assert_eq!(t.encode("<tag> \n ab<s> ab", false, true), [12, 10, 1, 5, 10]);
}

fn bpe_metadata() -> Metadata {
    let mut tokens: Vec<(&str, f32, i32)> =
        ["a", "b", "c", "Ġ", "ab", "bc", "Ġa", "abc", "Ã", "¤"].map(|t| (t, 0.0, 1)).into();
    tokens.extend([("<|im_end|>", 0.0, 3), ("<|im_end|>x", 0.0, 4), ("!", 0.0, 1), ("", 0.0, 1)]);
    let mut m = metadata("gpt2", &tokens);
    let merges = ["b c", "a b", "Ġ a", "a bc", "a nospace?", "d e"];
    m.insert("tokenizer.ggml.merges", Value::Strings(Arc::new(merges.into_iter().collect())));
    m.insert("tokenizer.ggml.pre", Value::String("gpt-2".into()));
    m
}

#[test]
fn bpe_merges_by_rank() {
    let t = Tokenizer::from_metadata(&bpe_metadata()).unwrap();
    let raw = |text: &str| t.encode(text, false, true);
    assert_eq!(raw("abc"), [7], "b c first, then a bc");
    assert_eq!(raw("ab aab"), [4, 6, 4]);
    assert_eq!(raw("ä"), [8, 9]);
    assert_eq!(raw("dea"), [0], "symbols outside the vocabulary vanish");
    assert_eq!(raw("a<|im_end|>xb<|im_end|>"), [0, 11, 1, 10], "the longer special token wins");
    assert_eq!(t.decode(&[8, 9, 10, 6, 3, 12], false), "ä a!", "the space before ! is cleaned");
    assert_eq!(t.decode(&[13], false), "[EMPTY_13]");
    assert_eq!(t.decode(&[99_999], true), "");
    let mut out = String::new();
    let mut stream = t.stream();
    stream.push(&t, 8, &mut out);
    assert_eq!(out, "");
    stream.push(&t, 9, &mut out);
    assert_eq!(out, "ä");
    let long = "ab".repeat(200_000);
    assert_eq!(raw(&long), vec![4; 200_000]);
}

/// Letters with accents of their own are those with accents after them where the publisher's tokenizer composes them.
///
/// *Source*: `tokenizers` with the normalizer NFC that Qwen's `tokenizer.json` has.
#[test]
fn accents_are_composed_where_the_publisher_composes_them() {
    let of = |pre: &str| {
        let mut m = Metadata::default();
        for (key, value) in bpe_metadata().iter().filter(|(key, _)| !key.ends_with("pre")) {
            m.insert(key, value.clone());
        }
        m.insert("tokenizer.ggml.pre", Value::String(pre.into()));
        Tokenizer::from_metadata(&m).unwrap()
    };
    for pre in ["qwen2", "qwen35", "olmo", "modern-bert", "command-r"] {
        let t = of(pre);
        assert_eq!(t.encode("a\u{308}", false, false), [8, 9], "{pre}");
        assert_eq!(t.encode("ä", false, false), [8, 9], "{pre}");
        assert_eq!(t.most_bytes(), Some(3 * "<|im_end|>x".len()), "{pre}");
    }
    let t = of("gpt-2");
    assert_eq!(t.encode("a\u{308}", false, false), [0], "nothing has the bytes of the accent");
    assert_eq!(t.most_bytes(), Some("<|im_end|>x".len()));
}

#[test]
fn llama3_takes_whole_pieces() {
    let mut m = Metadata::default();
    for (key, value) in bpe_metadata().iter().filter(|(key, _)| !key.ends_with("pre")) {
        m.insert(key, value.clone());
    }
    m.insert("tokenizer.ggml.pre", Value::String("llama-bpe".into()));
    m.insert("tokenizer.ggml.bos_token_id", Value::Uint(12));
    let t = Tokenizer::from_metadata(&m).unwrap();
    assert_eq!((t.add_bos(), t.bos()), (true, Some(12)));
    assert_eq!(t.encode("abc", true, false), [12, 7]);
}

const WORDPIECE: &[(&str, f32, i32)] = &[
    ("[PAD]", 0.0, 3),
    ("[UNK]", 0.0, 2),
    ("[CLS]", 0.0, 3),
    ("[SEP]", 0.0, 3),
    ("\u{2581}a", 0.0, 1),
    ("\u{2581}ab", 0.0, 1),
    ("a", 0.0, 1),
    ("b", 0.0, 1),
    ("ba", 0.0, 1),
    ("\u{2581}A", 0.0, 1),
    ("\u{2581}!", 0.0, 1),
    ("\u{2581}中", 0.0, 1),
    ("\u{2581}ä", 0.0, 1),
    ("\u{2581}\u{1112}", 0.0, 1),
    ("\u{1161}\u{11AB}", 0.0, 1),
];

/// Makes a WordPiece tokenizer with additional metadata.
fn wordpiece(more: &[(&str, Value)]) -> Tokenizer {
    let mut m = metadata("bert", WORDPIECE);
    for (key, id) in [("bos", 2), ("unknown", 1), ("seperator", 3)] {
        m.insert(&format!("tokenizer.ggml.{key}_token_id"), Value::Uint(id));
    }
    for (key, value) in more {
        m.insert(&format!("tokenizer.ggml.{key}"), value.clone());
    }
    Tokenizer::from_metadata(&m).unwrap()
}

#[test]
fn wordpiece_takes_the_longest_piece() {
    let t = wordpiece(&[("add_bos_token", Value::Bool(false)), ("add_eos_token", Value::Bool(false))]);
    let raw = |text: &str| t.encode(text, false, false);
    assert_eq!(raw("ab abba"), [5, 5, 8], "a word that begins, and one that goes on");
    assert_eq!(raw("abab"), [5, 6, 7]);
    assert_eq!(raw("ac ab"), [1, 5], "a word with a part that is not known is unknown as a whole");
    assert_eq!(raw("A\u{301}B!a\u{200B}b\0"), [5, 10, 5], "case, accents and what cannot be seen");
    assert_eq!(raw("a中\u{85}a\u{2003}a"), [4, 11, 4, 4], "ideographs are words");
    assert_eq!(raw("\u{D55C}"), [13, 14], "syllables are taken apart, as published");
    assert_eq!(raw(&"a".repeat(100)).len(), 100);
    assert_eq!(raw(&"a".repeat(101)), [1], "too long a word");
    assert_eq!(t.encode("[SEP]ab", true, true), [2, 3, 5, 3], "both ends are always added");
    assert_eq!(t.encode("", true, false), [2, 3]);
    assert_eq!(t.decode(&[5, 8, 10, 4], false), "abba! a");
    assert_eq!(raw(&"ab ".repeat(100_000)).len(), 100_000);
}

#[test]
fn wordpiece_keeps_case_and_accents_if_told_to() {
    let cased = wordpiece(&[("normalizer.lowercase", Value::Bool(false))]);
    assert_eq!(cased.encode("A Ab ä", false, false), [9, 9, 7, 12], "accents stay where case does");
    let bare = wordpiece(&[("normalizer.strip_accents", Value::Bool(false))]);
    assert_eq!(bare.encode("A Ä", false, false), [4, 12]);
    let both = [("lowercase", false), ("strip_accents", true)].map(|(key, on)| (format!("normalizer.{key}"), on));
    let stripped = wordpiece(&both.each_ref().map(|(key, on)| (&key[..], Value::Bool(*on))));
    assert_eq!(stripped.encode("Ä", false, false), [9]);
}

#[test]
fn unusable_tokenizers() {
    let error = |m: &Metadata| Tokenizer::from_metadata(m).expect_err("unusable");
    assert_eq!(error(&Metadata::default()), TokenizerError::Missing);
    assert_eq!(error(&metadata("none", &[])), TokenizerError::Missing);
    assert_eq!(error(&metadata("rwkv", SPM)), TokenizerError::Model("rwkv".into()));
    let mut m = metadata("gpt2", SPM);
    assert!(error(&m).to_string().contains("tokenizer.ggml.merges"));
    m.insert("tokenizer.ggml.pre", Value::String("new".into()));
    assert_eq!(error(&m), TokenizerError::Pre("new".into()));
    let mut short = Metadata::default();
    for (key, value) in metadata("llama", SPM).iter().filter(|(key, _)| !key.ends_with("scores")) {
        short.insert(key, value.clone());
    }
    short.insert("tokenizer.ggml.scores", Value::Floats(vec![0.0]));
    assert!(error(&short).to_string().contains("1 entries for 14 tokens"));
}
