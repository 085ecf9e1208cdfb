//! Pre-tokenizers: how text is cut into pieces before byte-level BPE.
//!
//! The published expressions end in `\s+(?!\S)|\s+`. That lookahead is the only construct that needs backtracking, so
//! it is done by hand ([`Pass::spaces`]) and everything else by automata that take linear time on any text.
//!
//! *Source*: the `tokenizer.json` files of the model families, by the names GGUF converters give them.

use regex_automata::meta::Regex;

use super::TokenizerError;

/// One expression of a pre-tokenizer; each pass cuts every piece of the one before.
#[derive(Debug)]
struct Pass {
    /// The expression without its white-space alternatives.
    pattern: &'static str,
    /// Whether `\s+(?!\S)|\s+` follows: a run of white space leaves its last character to the word that follows.
    spaces: bool,
}

/// A pre-tokenizer and the flags that go with it.
#[derive(Debug)]
pub(super) struct Pre {
    /// Values of `tokenizer.ggml.pre`.
    names: &'static [&'static str],
    passes: &'static [Pass],
    /// A piece that is a token is not merged step by step.
    pub ignore_merges: bool,
    /// Default of `tokenizer.ggml.add_bos_token`.
    pub add_bos: bool,
    /// Decoding removes the spaces before punctuation.
    pub clean_spaces: bool,
}

const fn words(pattern: &'static str) -> Pass {
    Pass { pattern, spaces: true }
}

const fn plain(pattern: &'static str) -> Pass {
    Pass { pattern, spaces: false }
}

const GPT2: Pass = words(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+");
const LLAMA3: Pass =
    words(r"(?i-u:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+");
const QWEN2: Pass =
    words(r"(?i-u:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+");
const QWEN35: Pass = words(
    r"(?i-u:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+",
);
const GPT4O: Pass = words(concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{L}&&[^a-z]]*[\p{L}&&[^A-Z]]+(?i-u:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"[^\r\n\p{L}\p{N}]?[\p{L}&&[^a-z]]+[\p{L}&&[^A-Z]]*(?i-u:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+"
));
const TEKKEN: Pass = words(concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{L}&&[^a-z]]*[\p{L}&&[^A-Z]]+|",
    r"[^\r\n\p{L}\p{N}]?[\p{L}&&[^a-z]]+[\p{L}&&[^A-Z]]*|",
    r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+"
));
const DIGIT: Pass = plain(r"\p{N}");
const THREE_DIGITS: Pass = plain("[0-9][0-9][0-9]");

/// What most entries of the table have.
const BASE: Pre = Pre { names: &[], passes: &[GPT2], ignore_merges: false, add_bos: false, clean_spaces: true };

const TABLE: &[Pre] = &[
    Pre {
        names: &[
            "gpt-2",
            "phi-2",
            "mpt",
            "olmo",
            "jais",
            "exaone4",
            "roberta-bpe",
            "jina-es",
            "jina-de",
            "jina-v1",
            "jina-v2",
            "gigachat",
            "mellum",
            "modern-bert",
            "a.x-4.0",
        ],
        ..BASE
    },
    Pre { names: &["trillion", "granite-docling"], clean_spaces: false, ..BASE },
    Pre { names: &["smollm", "command-r"], passes: &[DIGIT, GPT2], clean_spaces: false, ..BASE },
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
    Pre {
        names: &["qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "hunyuan", "solar-open", "grok-2"],
        passes: &[QWEN2],
        clean_spaces: false,
        ..BASE
    },
    Pre { names: &["megrez", "stablelm2"], passes: &[QWEN2], ..BASE },
    Pre { names: &["qwen35"], passes: &[QWEN35], clean_spaces: false, ..BASE },
    Pre {
        names: &["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"],
        passes: &[GPT4O],
        clean_spaces: false,
        ..BASE
    },
    Pre { names: &["tekken"], passes: &[TEKKEN], ignore_merges: true, add_bos: true, clean_spaces: false },
    Pre { names: &["falcon"], passes: &[plain(r"[\p{P}$+<=>^~|`]+"), GPT2, THREE_DIGITS], ..BASE },
    Pre { names: &["default"], passes: &[plain(r"[\p{P}$+<=>^~|]+"), GPT2, plain(r"\p{N}+"), THREE_DIGITS], ..BASE },
];

impl Pre {
    /// The pre-tokenizer of that name.
    pub fn find(name: &str) -> Option<&'static Pre> {
        TABLE.iter().find(|p| p.names.contains(&name))
    }
}

/// The expressions of a [`Pre`], compiled.
#[derive(Debug)]
pub(super) struct Splitter {
    passes: Vec<Regex>,
}

impl Splitter {
    /// *Errors*: an expression of the table does not compile.
    pub fn new(pre: &Pre) -> Result<Splitter, TokenizerError> {
        let mut passes = Vec::new();
        for pass in pre.passes {
            let patterns: &[&str] = if pass.spaces { &[pass.pattern, r"\s+"] } else { &[pass.pattern] };
            passes.push(Regex::new_many(patterns).map_err(|e| TokenizerError::Expression(e.to_string()))?);
        }
        Ok(Splitter { passes })
    }

    /// The pieces of a text: matches, and the gaps between them.
    pub fn split<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut pieces = vec![text];
        for regex in &self.passes {
            let mut cut = Vec::new();
            for piece in pieces {
                cut_piece(regex, piece, &mut cut);
            }
            pieces = cut;
        }
        pieces
    }
}

/// The pattern that stands for `\s+(?!\S)|\s+` in a regex of two.
const SPACES: usize = 1;

fn cut_piece<'t>(regex: &Regex, piece: &'t str, out: &mut Vec<&'t str>) {
    let mut rest = piece;
    while let Some(found) = regex.find(rest) {
        let mut end = found.end();
        let run = &rest[found.range()];
        if found.pattern().as_usize() == SPACES && end < rest.len() {
            let last = run.chars().next_back().map_or(0, char::len_utf8);
            if last < run.len() {
                end -= last;
            }
        }
        if end == 0 {
            break;
        }
        if found.start() > 0 {
            out.push(&rest[..found.start()]);
        }
        out.push(&rest[found.start()..end]);
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
        assert_eq!(Splitter::new(pre).unwrap().split(text), pieces, "{name}: {text:?}");
    }

    #[test]
    fn every_expression_compiles_and_keeps_the_text() {
        let text = "It's  3.14159 \t\n\n HTTPServer2024's ÄÖ ünï 日本語 🦙🦙 \u{301}x  $$`~`\r\n DON'T   ";
        for pre in TABLE {
            let pieces = Splitter::new(pre).unwrap().split(text);
            assert_eq!(pieces.concat(), text, "{:?}", pre.names);
            assert!(pieces.len() > 8 && pieces.iter().all(|p| !p.is_empty()), "{:?}", pre.names);
        }
        let mut names: Vec<_> = TABLE.iter().flat_map(|p| p.names).collect();
        names.sort();
        assert!(names.windows(2).all(|w| w[0] != w[1]), "names are unique");
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
        check("tekken", "helloWorld's 12", &["hello", "World", "'s", " ", "1", "2"]);
        check("falcon", "a.b 1234", &["a", ".", "b", " ", "123", "4"]);
        check("default", "a$$ 1234", &["a", "$$", " ", "123", "4"]);
        check("qwen35", "e\u{301}a", &["e\u{301}a"]);
    }

    #[test]
    fn long_runs_take_linear_time() {
        let text = format!("{}x{}", " ".repeat(1 << 20), "\n ".repeat(1 << 18));
        for name in ["gpt-2", "llama-bpe", "gpt-4o", "default"] {
            assert_eq!(Splitter::new(Pre::find(name).unwrap()).unwrap().split(&text).concat(), text);
        }
    }
}
