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
    assert_eq!(error(&metadata("new", SPM)), TokenizerError::Model("new".into()));
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
    let reason = |m: &Metadata| match error(m) {
        TokenizerError::Malformed { key, reason } => format!("{key} {reason}"),
        error => panic!("{error}"),
    };
    assert!(reason(&metadata("t5", &SPM[..2])).contains("unknown_token_id names no token"));
    assert!(reason(&metadata("t5", &[("a", f32::NAN, 1), ("b", 0.0, 1), ("c", 0.0, 2)])).contains("not finite"));
    assert!(reason(&metadata("rwkv", &[("\\x0g", 0.0, 1)])).contains("hexadecimal"));
    assert!(reason(&metadata("plamo2", SPM)).contains("lacks a token for some byte"));
    for (map, part) in [(&[1, 0, 0][..], "cut off"), (&[4, 0, 0, 0, 1], "cut off"), (&[0; 4], "has no nodes")] {
        let mut m = metadata("t5", SPM);
        m.insert("tokenizer.ggml.precompiled_charsmap", Value::Ints(map.to_vec()));
        assert!(reason(&m).contains(part), "{map:?}");
    }
}

const UNIGRAM: &[(&str, f32, i32)] = &[
    ("<pad>", 0.0, 3),
    ("</s>", 0.0, 3),
    ("<unk>", 0.0, 2),
    ("\u{2581}", -3.0, 1),
    ("a", -4.0, 1),
    ("\u{2581}a", -2.0, 1),
    ("b", -5.0, 1),
    ("ab", -9.0, 1),
    ("<mask>", 0.0, 3),
    ("Qx", -50.0, 4),
    ("c\u{2581}", 0.0, 4),
    ("d", -1.0, 5),
    ("e", -1.0, 0),
];

fn unigram(more: &[(&str, Value)]) -> Tokenizer {
    let mut m = metadata("t5", UNIGRAM);
    for (key, value) in more {
        m.insert(key, value.clone());
    }
    Tokenizer::from_metadata(&m).unwrap()
}

#[test]
fn unigram_takes_the_best_sum_of_scores() {
    let t = unigram(&[]);
    let raw = |text: &str| t.encode(text, false, true);
    assert_eq!(raw("ab"), [7], "of equal sums the one whose last token begins first");
    assert_eq!(raw("a  a"), [4, 3, 5], "spaces are kept, and none is added");
    assert_eq!(raw("xyza\u{1F600}"), [2, 4, 2], "neighbouring unknown characters are one token");
    assert_eq!(raw("</s>a"), [1, 4]);
    assert_eq!(raw("ade"), [4, 11, 2], "unused tokens count, those of no kind do not");
    assert_eq!(t.encode("a", true, false), [4, 1]);
    assert_eq!(t.encode("", true, false), [1]);
    assert_eq!(raw(&"xa".repeat(100_000)).len(), 200_000);
    assert_eq!(raw(&"x".repeat(1 << 20)), [2]);
    assert_eq!((t.bos(), t.eos(), t.add_bos(), t.most_bytes()), (None, Some(1), false, None));
    assert_eq!(t.decode(&[5, 3, 4, 10, 1, 11], false), " a ac\u{2581}", "user-defined tokens are shown as they are");
    assert_eq!(t.decode(&[5, 1], true), " a</s>");

    let flag = |key: &'static str| (key, Value::Bool(true));
    let trimmed = unigram(&[flag("tokenizer.ggml.remove_extra_whitespaces"), flag("tokenizer.ggml.add_space_prefix")]);
    assert_eq!(trimmed.encode("  a   a ", false, false), [5, 5]);
    assert_eq!(trimmed.encode("aQxa", false, false), [5, 9, 5], "each part begins with a word");
    assert!(trimmed.encode("   ", false, false).is_empty());
    assert_eq!(trimmed.decode(&[5, 5], false), "a a");
    let prefixed = unigram(&[flag("tokenizer.ggml.add_space_prefix")]);
    assert_eq!(prefixed.encode(" a a", false, false), [3, 5, 5], "one space more before the first word");
}

#[test]
fn a_mask_takes_the_space_before_it_where_its_model_says_so() {
    let t = unigram(&[("general.architecture", Value::String("jina-bert-v3".into()))]);
    assert_eq!(t.encode("a \n<mask> a", false, true), [4, 8, 5]);
    assert_eq!(t.encode(" <mask>  <mask>", false, true), [8, 8]);
    assert_eq!(unigram(&[]).encode("a <mask>a", false, true), [4, 3, 8, 4]);
}

#[test]
fn pairs_have_the_tokens_that_the_file_adds() {
    let ids = |key: &str, id| (format!("tokenizer.ggml.{key}_token_id"), Value::Uint(id));
    let flag = |key: &str, on| (format!("tokenizer.ggml.add_{key}_token"), Value::Bool(on));
    let of = |model: &str, more: &[(String, Value)]| {
        let mut m = metadata(model, UNIGRAM);
        m.insert("tokenizer.ggml.merges", Value::Strings(Arc::default()));
        more.iter().for_each(|(key, value)| assert!(m.insert(key, value.clone())));
        let Pair { bos, eos, sep, .. } = Tokenizer::from_metadata(&m).unwrap().pair;
        [bos, eos, sep]
    };
    assert_eq!(of("t5", &[]), [None, Some(1), None]);
    let roberta = [ids("bos", 0), ids("eos", 1), ids("seperator", 3), flag("bos", true), flag("sep", true)];
    assert_eq!(of("t5", &roberta), [Some(0), Some(1), Some(3)]);
    assert_eq!(of("t5", &roberta[..4]), [Some(0), Some(1), None]);
    let bert = [ids("bos", 0), ids("seperator", 3), flag("eos", true), flag("sep", false)];
    assert_eq!(of("bert", &bert[..2]), [Some(0), None, Some(3)], "files of before have no final separator");
    assert_eq!(of("bert", &bert), [Some(0), Some(3), None]);
    let pre = |name: &str| ("tokenizer.ggml.pre".to_owned(), Value::String(name.into()));
    assert_eq!(of("gpt2", &[ids("seperator", 3), pre("jina-v1-en")]), [None, None, Some(3)]);
    assert_eq!(of("gpt2", &[ids("seperator", 3), pre("gpt-2")]), [None; 3]);
    assert_eq!(of("t5", &[ids("bos", 99), ids("eos", 99), flag("bos", true)]), [None, Some(1), None], "out of range");
}

#[test]
fn rwkv_takes_the_longest_token() {
    let tokens = [
        ("<s>", 0.0, 3),
        ("a", 0.0, 1),
        ("ab", 0.0, 1),
        ("abcd", 0.0, 1),
        ("\\n", 0.0, 1),
        ("\\xe4", 0.0, 1),
        ("\\xb8\\xad", 0.0, 1),
        ("\\\\", 0.0, 1),
        ("\\'\\t", 0.0, 5),
        ("中", 0.0, 4),
    ];
    let t = Tokenizer::from_metadata(&metadata("rwkv", &tokens)).unwrap();
    assert_eq!(t.encode("abca\n\\'\tb", true, false), [2, 1, 4, 7, 8], "bytes without a token vanish");
    assert_eq!(t.encode("\u{4e2d}<s>", true, true), [9, 0]);
    assert_eq!(t.encode("a<s>", false, false), [1, 0], "the texts of special tokens are texts, too");
    assert_eq!(t.decode(&[3, 4, 5, 6, 8, 0], false), "abcd\n中'\t");
    assert_eq!(t.decode(&[5, 0], true), "\u{FFFD}<s>");
}

#[test]
fn plamo_takes_the_lowest_sum_of_costs() {
    let mut tokens = vec![("<unk>".to_owned(), 0.0, 2), ("<s>".to_owned(), 0.0, 3), ("</s>".to_owned(), 0.0, 3)];
    tokens.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), 0.0, 6)));
    let texts = [("a", -1.0), ("b", -1.0), ("ab", -2.0), ("c", -3000.0), ("\u{2581}", -1.0), ("d", -1500.0)];
    tokens.extend(texts.map(|(text, score)| (text.to_owned(), score, 1)));
    let tokens: Vec<_> = tokens.iter().map(|(text, score, kind)| (&text[..], *score, *kind)).collect();
    let t = Tokenizer::from_metadata(&metadata("plamo2", &tokens)).unwrap();
    let raw = |text: &str| t.encode(text, true, false);
    assert_eq!(raw("\u{FEFF}abb"), [261, 260], "of equal costs the longest token at the beginning");
    assert_eq!(raw("c"), [3 + 99], "a token that costs too much is not used");
    assert_eq!(raw("d"), [3 + 100], "bytes are cheaper");
    assert_eq!(raw("a \u{2581}é"), [259, 3 + 32, 263, 3 + 0xC3, 3 + 0xA9]);
    assert_eq!(t.decode(&raw("a \u{2581}é"), false), "a \u{2581}é", "nothing stands for a space");
}
