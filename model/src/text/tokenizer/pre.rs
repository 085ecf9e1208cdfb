//! Pre-tokenizers: splitting of a text into pieces before byte-level BPE.
//!
//! The published expressions end in `\s+(?!\S)|\s+`. That lookahead is the only construct that needs backtracking, so
//! it is implemented by hand ([`Pass::spaces`]). Everything else uses automata, which take linear time on any text.
//!
//! *Source*: the `tokenizer.json` files of the model families, under the names that GGUF converters use.

use super::TokenizerError;
use super::pattern::Pattern;

/// Expression of a pre-tokenizer. Each pass splits every piece of the pass before.
#[derive(Debug)]
struct Pass {
    /// The expression without its white-space alternatives.
    pattern: &'static str,
    /// Whether `\s+(?!\S)|\s+` follows: a run of white space leaves its last character to the word that follows.
    spaces: bool,
}

/// A pre-tokenizer with its flags.
#[derive(Debug)]
pub(super) struct Pre {
    /// Values of `tokenizer.ggml.pre` that name it.
    names: &'static [&'static str],
    passes: &'static [Pass],
    /// Whether a piece that is a token is not merged step by step.
    pub ignore_merges: bool,
    /// Default of `tokenizer.ggml.add_bos_token`.
    pub add_bos: bool,
    /// Whether decoding removes the spaces before punctuation.
    pub clean_spaces: bool,
    /// Letters and the accents that follow them are composed (NFC) before anything is cut. Files do not say it.
    ///
    /// *Source*: the publishers' `tokenizer.json`, of which GGUF keeps no normalizer.
    pub composes: bool,
}

const fn words(pattern: &'static str) -> Pass {
    Pass { pattern, spaces: true }
}

const fn plain(pattern: &'static str) -> Pass {
    Pass { pattern, spaces: false }
}

/// Contractions in either case. U+017F is a case variant of s in Unicode.
macro_rules! contraction {
    () => {
        r"(?:(?i-u:'s|'t|'re|'ve|'m|'ll|'d)|'\x{17F})"
    };
}

/// Word of gpt-4o and tekken: upper-case letters followed by lower-case ones, either of which may be missing. Letters
/// without case and marks count as both. The argument is appended to each of the two alternatives.
macro_rules! cased_word {
    ($tail:expr) => {
        concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
            $tail,
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
            $tail
        )
    };
}

const GPT2: Pass = words(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+");
const LLAMA3: Pass =
    words(concat!(contraction!(), r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"));
const QWEN2: Pass =
    words(concat!(contraction!(), r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"));
const QWEN35: Pass =
    words(concat!(contraction!(), r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"));
const GPT4O: Pass =
    words(concat!(cased_word!(concat!(contraction!(), "?")), r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+"));
const TEKKEN: Pass = words(concat!(cased_word!(""), r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+"));
const DIGIT: Pass = plain(r"\p{N}");
const THREE_DIGITS: Pass = plain("[0-9][0-9][0-9]");
/// Digits among the characters that stand for bytes, as bytes. Falcon splits at them, even within characters.
const NUMERIC_BYTES: Pass = plain(r"(?-u:[0-9\xB2\xB3\xB9\xBC-\xBE])+");

/// Values that most entries of the table share.
const BASE: Pre =
    Pre { names: &[], passes: &[GPT2], ignore_merges: false, add_bos: false, clean_spaces: true, composes: false };

const TABLE: &[Pre] = &[
    Pre {
        names: &[
            "gpt-2",
            "phi-2",
            "mpt",
            "jais",
            "exaone4",
            "roberta-bpe",
            "jina-es",
            "jina-de",
            "jina-v1",
            "jina-v2",
            "gigachat",
            "mellum",
            "a.x-4.0",
        ],
        ..BASE
    },
    Pre { names: &["olmo", "modern-bert"], composes: true, ..BASE },
    Pre { names: &["trillion", "granite-docling"], clean_spaces: false, ..BASE },
    Pre { names: &["smollm"], passes: &[DIGIT, GPT2], clean_spaces: false, ..BASE },
    Pre { names: &["command-r"], passes: &[DIGIT, GPT2], clean_spaces: false, composes: true, ..BASE },
    Pre {
        names: &["starcoder", "refact", "codeshell", "exaone", "minerva-7b", "mellum2"],
        passes: &[DIGIT, GPT2],
        ..BASE
    },
    Pre {
        names: &[
            "llama-bpe",
            "llama3",
            "llama-v3",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "lfm2",
            "midm-2.0",
            "jina-v5-nano",
        ],
        passes: &[LLAMA3],
        ignore_merges: true,
        add_bos: true,
        ..BASE
    },
    Pre { names: &["dbrx", "smaug-bpe", "chatglm-bpe", "glm4"], passes: &[LLAMA3], ..BASE },
    Pre { names: &["qwen2"], passes: &[QWEN2], clean_spaces: false, composes: true, ..BASE },
    Pre {
        names: &["deepseek-r1-qwen", "kormo", "f2llmv2", "hunyuan", "solar-open", "grok-2"],
        passes: &[QWEN2],
        clean_spaces: false,
        ..BASE
    },
    Pre { names: &["megrez", "stablelm2"], passes: &[QWEN2], ..BASE },
    Pre { names: &["qwen35"], passes: &[QWEN35], clean_spaces: false, composes: true, ..BASE },
    Pre {
        names: &["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"],
        passes: &[GPT4O],
        clean_spaces: false,
        ..BASE
    },
    Pre { names: &["tekken"], passes: &[TEKKEN], ignore_merges: true, add_bos: true, clean_spaces: false, ..BASE },
    Pre { names: &["falcon"], passes: &[plain(r"[\p{P}$+<=>^~|`]+"), GPT2, NUMERIC_BYTES, THREE_DIGITS], ..BASE },
    Pre { names: &["default"], passes: &[plain(r"[\p{P}$+<=>^~|]+"), GPT2, plain(r"\p{N}+"), THREE_DIGITS], ..BASE },
];

impl Pre {
    /// Finds the pre-tokenizer with a name.
    pub fn find(name: &str) -> Option<&'static Pre> {
        TABLE.iter().find(|p| p.names.contains(&name))
    }
}

/// The compiled expressions of a [`Pre`].
#[derive(Debug)]
pub(super) struct Splitter {
    passes: Vec<Pattern>,
}

impl Splitter {
    /// Compiles the expressions.
    ///
    /// *Errors*: an expression of the table does not compile.
    pub fn new(pre: &Pre) -> Result<Splitter, TokenizerError> {
        let mut passes = Vec::new();
        for pass in pre.passes {
            let patterns: &[&str] = if pass.spaces { &[pass.pattern, r"\s+"] } else { &[pass.pattern] };
            passes.push(Pattern::new(patterns)?);
        }
        Ok(Splitter { passes })
    }

    /// Splits a text into its pieces: matches, and the gaps between them. Pieces may be incomplete characters.
    pub fn split<'t>(&self, text: &'t str) -> Vec<&'t [u8]> {
        let mut pieces = vec![text.as_bytes()];
        for pattern in &self.passes {
            let mut cut = Vec::new();
            for piece in pieces {
                cut_piece(pattern, piece, &mut cut);
            }
            pieces = cut;
        }
        pieces
    }
}

/// Index of the expression that stands for `\s+(?!\S)|\s+` in a pattern of two.
const SPACES: usize = 1;

fn cut_piece<'t>(pattern: &Pattern, piece: &'t [u8], out: &mut Vec<&'t [u8]>) {
    let mut rest = piece;
    while let Some((expression, found)) = pattern.find(rest) {
        let mut end = found.end;
        let run = &rest[found.clone()];
        if expression == SPACES && end < rest.len() {
            let last = 1 + run.iter().rev().take_while(|&&byte| byte & 0xC0 == 0x80).count();
            if last < run.len() {
                end -= last;
            }
        }
        if end == 0 {
            break;
        }
        if found.start > 0 {
            out.push(&rest[..found.start]);
        }
        out.push(&rest[found.start..end]);
        rest = &rest[end..];
    }
    if !rest.is_empty() {
        out.push(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, pieces: &[&str]) {
        let pre = Pre::find(name).expect("in the table");
        let splitter = Splitter::new(pre).unwrap();
        let found: Vec<_> = splitter.split(text).into_iter().map(String::from_utf8_lossy).collect();
        assert_eq!(found, pieces, "{name}: {text:?}");
    }

    #[test]
    fn every_expression_compiles_and_keeps_the_text() {
        let text = "It's  3.14159 \t\n\n HTTPServer2024's ÄÖ ünï 日本語 🦙🦙 \u{301}x  $$`~`\r\n DON'T   ";
        for pre in TABLE {
            let pieces = Splitter::new(pre).unwrap().split(text);
            assert_eq!(pieces.concat(), text.as_bytes(), "{:?}", pre.names);
            assert!(pieces.len() > 8 && pieces.iter().all(|p| !p.is_empty()), "{:?}", pre.names);
        }
        let mut names: Vec<_> = TABLE.iter().flat_map(|p| p.names).collect();
        names.sort();
        assert!(names.windows(2).all(|w| w[0] != w[1]), "names are unique");
    }

    /// Lengths of pieces that the publishers' own expressions make, from `tests/pretokenizers/make.py`.
    const SPLITS: &str = include_str!("../../../tests/pretokenizers/splits.txt");

    #[test]
    fn texts_of_many_scripts_are_cut_as_published() {
        let mut splitters = std::collections::BTreeMap::new();
        let (mut text, mut wrong) = (String::new(), Vec::new());
        for line in SPLITS.lines() {
            if line.starts_with('"') {
                text = serde_json::from_str(line).unwrap();
                continue;
            }
            let (names, lengths) = line.split_once(": ").unwrap();
            for name in names.split(' ') {
                let splitter =
                    splitters.entry(name).or_insert_with(|| Splitter::new(Pre::find(name).unwrap()).unwrap());
                let found: Vec<String> = splitter.split(&text).iter().map(|piece| piece.len().to_string()).collect();
                if found.join(" ") != lengths {
                    wrong.push(format!("{name} {text:?}: {}, not {lengths}", found.join(" ")));
                }
            }
        }
        assert_eq!(splitters.len(), 8);
        assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    }

    #[test]
    fn white_space_leaves_its_last_character() {
        check("gpt-2", "a  b\tc \n", &["a", " ", " b", "\t", "c", " \n"]);
        check("gpt-2", "a \u{2003}b", &["a", " ", "\u{2003}", "b"]);
        check("llama-bpe", "a \n\n  b  ", &["a", " \n\n", " ", " b", "  "]);
        check("gpt-2", "   ", &["   "]);
        check("gpt-2", "", &[]);
    }

    #[test]
    fn families_differ_where_they_should() {
        check("gpt-2", "it's 12345", &["it", "'s", " 12345"]);
        check("smollm", "it's 123", &["it", "'s", " ", "1", "2", "3"]);
        check("llama-bpe", "IT'S 12345", &["IT", "'S", " ", "123", "45"]);
        check("qwen2", "x 12\n", &["x", " ", "1", "2", "\n"]);
        check("gpt-4o", "helloWorld's 1234", &["hello", "World's", " ", "123", "4"]);
        check(
            "gpt-4o",
            "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}'S",
            &["\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}'S"],
        );
        check("tekken", "helloWorld's 12", &["hello", "World", "'s", " ", "1", "2"]);
        check("falcon", "a.b 1234 12", &["a", ".", "b", " ", "123", "4", " ", "12"]);
        check("default", "a$$ 1234", &["a", "$$", " ", "123", "4"]);
        check("qwen35", "e\u{301}a", &["e\u{301}a"]);
    }

    #[test]
    fn long_runs_take_linear_time() {
        let marks = "A\u{301}".repeat(1 << 18);
        let text = format!("{}x{}{marks}{}", " ".repeat(1 << 20), "\n ".repeat(1 << 18), "\u{301}".repeat(1 << 18));
        for name in ["gpt-2", "llama-bpe", "gpt-4o", "tekken", "falcon", "default"] {
            assert_eq!(Splitter::new(Pre::find(name).unwrap()).unwrap().split(&text).concat(), text.as_bytes());
        }
    }
}
