//! Pre-tokenizers: splitting of a text into pieces before byte-level BPE.
//!
//! The published expressions use lookahead for white space and for groups of digits. That is the only construct that
//! needs backtracking, so it is implemented by hand ([`Matches`]). Everything else uses automata, which take linear time
//! on any text.
//!
//! *Source*: the `tokenizer.json` files of the model families, under the names that GGUF converters use.

use super::TokenizerError;
use super::pattern::Pattern;

/// Expression of a pre-tokenizer. Each pass splits every piece of the pass before.
#[derive(Debug)]
struct Pass {
    /// The expression, without alternatives for white space that follow by `matches`.
    pattern: &'static str,
    matches: Matches,
}

/// Treatment of an expression's matches.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Matches {
    /// Each match is a piece.
    Pieces,
    /// `\s+(?!\S)|\s+` follows: a run of white space leaves its last character to the word that follows.
    Words,
    /// White space is matched as in `Words`, and cut into runs of [`RUNS`] characters.
    Runs,
    /// Each match is cut into groups of three characters from its end.
    Threes,
    /// Each match is cut as in `Threes`, and its first group is one piece with the text before it.
    JoinedThrees,
}

/// Lengths of runs of white space in characters, longest first.
const RUNS: [usize; 10] = [512, 256, 128, 64, 32, 16, 8, 4, 2, 1];

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
    /// Default of `tokenizer.ggml.add_sep_token`.
    pub add_sep: bool,
    /// Whether decoding removes the spaces before punctuation.
    pub clean_spaces: bool,
    /// Letters and the accents that follow them are composed (NFC) before anything is cut. Files do not say it.
    ///
    /// *Source*: the publishers' `tokenizer.json`, of which GGUF keeps no normalizer.
    pub composes: bool,
}

const fn words(pattern: &'static str) -> Pass {
    Pass { pattern, matches: Matches::Words }
}

const fn plain(pattern: &'static str) -> Pass {
    Pass { pattern, matches: Matches::Pieces }
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

/// Words of Llama 3 and later: contractions, letters with one other character before them, a number, other characters,
/// and line ends.
macro_rules! modern_words {
    ($number:expr, $line_ends:expr) => {
        concat!(
            contraction!(),
            r"|[^\r\n\p{L}\p{N}]?\p{L}+|",
            $number,
            r"| ?[^\s\p{L}\p{N}",
            $line_ends,
            r"|\s*[\r\n]+"
        )
    };
}

/// Words of DeepSeek-V3: Latin letters with a symbol before them, letters and marks with one other character before
/// them, and symbols. The argument goes on after symbols.
macro_rules! symbol_words {
    ($tail:expr) => {
        concat!(r"[!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+", $tail)
    };
}

const GPT2: Pass = words(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+");
const LLAMA3: Pass = words(modern_words!(r"\p{N}{1,3}", r"]+[\r\n]*"));
const JAIS2: Pass = Pass { matches: Matches::Runs, ..LLAMA3 };
const QWEN2: Pass = words(modern_words!(r"\p{N}", r"]+[\r\n]*"));
const SEED_CODER: Pass = words(modern_words!(r"\p{N}", r"\r\n]+"));
const QWEN35: Pass =
    words(concat!(contraction!(), r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"));
/// Words of gpt-4o with a number.
macro_rules! cased_words {
    ($number:expr) => {
        concat!(cased_word!(concat!(contraction!(), "?")), "|", $number, r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+")
    };
}

const GPT4O: Pass = words(cased_words!(r"\p{N}{1,3}"));
const TEKKEN: Pass = words(concat!(cased_word!(""), r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+"));
const SYMBOLS: Pass = words(symbol_words!(r"[\r\n]*|\s*[\r\n]+"));
const BLOOM: Pass = plain(r" ?[^\s()|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C}]+");
const LINE_END: Pass = plain(r"[\r\n]");
/// Ideographs and syllables of East Asia, and everything between.
const ASIAN: Pass = plain(r"[\x{800}-\x{9FA5}\x{AC00}-\x{D7FF}]+");
/// Ideographs and kana.
const JAPANESE: Pass = plain(r"[\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+");
/// Hangul, punctuation of East Asia, Bopomofo, and ideographs with kana.
const KOREAN_AND_CHINESE: Pass = plain(concat!(
    r"[\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}",
    r"\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+"
));
/// Scripts that are written without spaces. The publisher's list begins its last range of ideographs at U+8C48, which
/// U+F900 was normalized to.
const SPACELESS: Pass = plain(concat!(
    r"[\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{8C48}-\x{FAFF}\x{3040}-\x{30FF}\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF}",
    r"\x{E40}-\x{EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{1100}-\x{11FF}]+"
));
/// Letters with case, as DeepSeek lists them: those of its version of Unicode, without some scripts.
const DEEPSEEK_LETTERS: Pass = plain(concat!(
    r"\s?[[\p{Lu}\p{Ll}\p{Lt}\x{295}]--[\x{560}-\x{588}\x{10C7}-\x{10FF}\x{1C80}-\x{1C8A}\x{2D00}-\x{2D2D}",
    r"\x{A790}-\x{A7FA}\x{AB30}-\x{AB68}\x{10570}-\x{105BC}\x{10D50}-\x{10D85}\x{16E40}-\x{16ED3}",
    r"\x{1D400}-\x{1D7CB}\x{1DF00}-\x{1DF2A}]]+"
));
const DEEPSEEK_SYMBOLS: Pass =
    plain(r"\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+");
const DIGITS: Pass = plain(r"\p{N}+");
const DIGIT: Pass = plain(r"\p{N}");
const UP_TO_THREE_DIGITS: Pass = plain(r"\p{N}{1,3}");
const THREE_DIGITS: Pass = plain("[0-9][0-9][0-9]");
/// Digits among the characters that stand for bytes, as bytes. Falcon splits at them, even within characters.
const NUMERIC_BYTES: Pass = plain(r"(?-u:[0-9\xB2\xB3\xB9\xBC-\xBE])+");

/// Values that most entries of the table share.
const BASE: Pre = Pre {
    names: &[],
    passes: &[GPT2],
    ignore_merges: false,
    add_bos: false,
    add_sep: false,
    clean_spaces: true,
    composes: false,
};

const TABLE: &[Pre] = &[
    Pre {
        names: &[
            "gpt-2",
            "phi-2",
            "mpt",
            "jais",
            "exaone4",
            "jina-es",
            "jina-de",
            "jina-v2-es",
            "jina-v2-de",
            "gigachat",
            "mellum",
            "a.x-4.0",
        ],
        ..BASE
    },
    Pre { names: &["roberta-bpe", "jina-v1-en", "jina-v2-code"], add_sep: true, ..BASE },
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
        names: &[
            "deepseek-r1-qwen",
            "kormo",
            "f2llmv2",
            "hunyuan",
            "solar-open",
            "grok-2",
            "bailingmoe",
            "bailingmoe2",
            "llada-moe",
        ],
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
    Pre { names: &["granite-embed-multi-97m"], passes: &[GPT4O], ignore_merges: true, clean_spaces: false, ..BASE },
    Pre {
        names: &["youtu"],
        passes: &[KOREAN_AND_CHINESE, words(cased_words!(r"\p{N}"))],
        ignore_merges: true,
        clean_spaces: false,
        ..BASE
    },
    Pre {
        names: &["minicpm5"],
        passes: &[UP_TO_THREE_DIGITS, words(modern_words!(r"\p{N}+", r"]+[\r\n]*"))],
        ignore_merges: true,
        ..BASE
    },
    Pre { names: &["tekken"], passes: &[TEKKEN], ignore_merges: true, add_bos: true, clean_spaces: false, ..BASE },
    Pre { names: &["seed-coder"], passes: &[SEED_CODER], clean_spaces: false, ..BASE },
    Pre { names: &["jais-2"], passes: &[JAIS2], ..BASE },
    Pre { names: &["bloom", "gpt3-finnish"], passes: &[BLOOM], ..BASE },
    Pre { names: &["poro-chat"], passes: &[BLOOM], clean_spaces: false, ..BASE },
    Pre { names: &["viking"], passes: &[BLOOM, DIGIT], clean_spaces: false, ..BASE },
    Pre {
        names: &["deepseek-llm"],
        passes: &[LINE_END, DEEPSEEK_LETTERS, DEEPSEEK_SYMBOLS, plain(r"\s+$"), ASIAN, DIGITS],
        clean_spaces: false,
        ..BASE
    },
    Pre {
        names: &["deepseek-coder"],
        passes: &[LINE_END, plain(r"\s?\p{L}+"), plain(r"\s?\p{P}+"), ASIAN, DIGIT],
        clean_spaces: false,
        ..BASE
    },
    Pre {
        names: &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        passes: &[UP_TO_THREE_DIGITS, JAPANESE, SYMBOLS],
        clean_spaces: false,
        ..BASE
    },
    Pre {
        names: &["spark2_5"],
        passes: &[UP_TO_THREE_DIGITS, JAPANESE, words(symbol_words!(r"|[\r\n]")), DIGIT],
        clean_spaces: false,
        ..BASE
    },
    Pre {
        names: &["afmoe"],
        passes: &[Pass { matches: Matches::JoinedThrees, ..DIGITS }, SPACELESS, SYMBOLS],
        clean_spaces: false,
        ..BASE
    },
    Pre {
        names: &["tiny_aya", "cohere2moe"],
        passes: &[Pass { matches: Matches::Threes, ..DIGITS }, GPT4O],
        clean_spaces: false,
        ..BASE
    },
    Pre { names: &["falcon"], passes: &[plain(r"[\p{P}$+<=>^~|`]+"), GPT2, NUMERIC_BYTES, THREE_DIGITS], ..BASE },
    Pre { names: &["default"], passes: &[plain(r"[\p{P}$+<=>^~|]+"), GPT2, DIGITS, THREE_DIGITS], ..BASE },
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
    passes: Vec<(Pattern, Matches)>,
}

impl Splitter {
    /// Compiles the expressions.
    ///
    /// *Errors*: an expression of the table does not compile.
    pub fn new(pre: &Pre) -> Result<Splitter, TokenizerError> {
        let mut passes = Vec::new();
        for pass in pre.passes {
            let spaces = matches!(pass.matches, Matches::Words | Matches::Runs);
            let patterns: &[&str] = if spaces { &[pass.pattern, r"\s+"] } else { &[pass.pattern] };
            passes.push((Pattern::new(patterns)?, pass.matches));
        }
        Ok(Splitter { passes })
    }

    /// Splits a text into its pieces: matches, and the gaps between them. Pieces may be incomplete characters.
    pub fn split<'t>(&self, text: &'t str) -> Vec<&'t [u8]> {
        let mut pieces = vec![text.as_bytes()];
        for (pattern, matches) in &self.passes {
            let mut cut = Vec::new();
            for piece in pieces {
                cut_piece(pattern, *matches, piece, &mut cut);
            }
            pieces = cut;
        }
        pieces
    }
}

/// Index of the expression that stands for white space in a pattern of two.
const SPACES: usize = 1;

fn cut_piece<'t>(pattern: &Pattern, matches: Matches, piece: &'t [u8], out: &mut Vec<&'t [u8]>) {
    // Beginning of what is not cut yet, and of what is not searched yet.
    let (mut from, mut at) = (0, 0);
    let mut cut = |end: usize| {
        if end > from {
            out.push(&piece[from..end]);
        }
        from = end;
    };
    while let Some((expression, found)) = pattern.find(&piece[at..]) {
        let (start, mut end) = (at + found.start, at + found.end);
        let run = &piece[start..end];
        // Places where a character begins, and the end.
        let places = || (0..=run.len()).filter(|place| run.get(*place).is_none_or(|byte| byte & 0xC0 != 0x80));
        if matches != Matches::JoinedThrees {
            cut(start);
        }
        match matches {
            Matches::Threes | Matches::JoinedThrees => {
                let first = (places().count() - 1) % 3;
                places().enumerate().skip(1).filter(|(n, _)| n % 3 == first).for_each(|(_, place)| cut(start + place));
            }
            _ if expression == SPACES => {
                if end < piece.len()
                    && let Some(last) = places().rev().nth(1).filter(|last| *last > 0)
                {
                    end = start + last;
                }
                let mut left = places().skip(1).take_while(|place| start + place <= end).count();
                let mut ends = places().skip(1);
                let mut next = || RUNS.into_iter().find(|length| *length <= left).inspect(|length| left -= length);
                while matches == Matches::Runs
                    && let Some(place) = next().and_then(|length| ends.nth(length - 1))
                {
                    cut(start + place);
                }
            }
            _ => {}
        }
        cut(end);
        if end == at {
            break;
        }
        at = end;
    }
    cut(piece.len());
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
        check("minicpm5", "it's 12345\n", &["it", "'s", " ", "123", "45", "\n"]);
        check("viking", "ab 12, c", &["ab", " ", "1", "2", ",", " c"]);
        check("youtu", "aB1\u{AC00}!\u{FF01}\u{3105}", &["a", "B", "1", "\u{AC00}", "!", "\u{FF01}", "\u{3105}"]);
    }

    #[test]
    fn digits_are_grouped_from_their_end() {
        check("tiny_aya", "ab1234567c 123", &["ab", "1", "234", "567", "c", " ", "123"]);
        check("afmoe", "1234567c", &["1", "234", "567", "c"]);
        // The first group goes on with the text before it, and a later pass may cut them.
        check("afmoe", "ab12345", &["ab", "12", "345"]);
        let joined = Pre { passes: &[Pass { matches: Matches::JoinedThrees, ..DIGITS }], ..BASE };
        let pieces = |text: &'static str| {
            let pieces = Splitter::new(&joined).unwrap().split(text).join(&b'|');
            String::from_utf8(pieces).unwrap()
        };
        assert_eq!(pieces("ab12345c"), "ab12|345|c");
        assert_eq!(pieces("ab123456c78"), "ab123|456|c78");
        assert_eq!(pieces("\u{662}\u{b2}\u{b3}4"), "\u{662}|\u{b2}\u{b3}4", "any numbers");
    }

    #[test]
    fn white_space_is_cut_into_runs() {
        let spaces = " ".repeat(1000);
        let lengths = |text: &str| {
            let pieces = Splitter::new(Pre::find("jais-2").unwrap()).unwrap();
            pieces.split(text).iter().map(|piece| piece.len()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(&spaces), [512, 256, 128, 64, 32, 8]);
        assert_eq!(lengths(&format!("a{}b", &spaces[..8])), [1, 4, 2, 1, 2], "the last space is that of a word");
        assert_eq!(lengths("a \u{3000}!"), [1, 1, 3, 1]);
        assert_eq!(lengths("   \n  b"), [4, 1, 2]);
    }

    /// DeepSeek lists the letters.
    #[test]
    fn letters_of_deepseek_are_those_of_its_list() {
        const LIST: &str = "A-Za-z\u{b5}\u{c0}-\u{d6}\u{d8}-\u{f6}\u{f8}-\u{1ba}\u{1bc}-\u{1bf}\u{1c4}-\u{293}\u{295}-\u{2af}\
            \u{370}-\u{373}\u{376}\u{377}\u{37b}-\u{37d}\u{37f}\u{386}\u{388}-\u{38a}\u{38c}\u{38e}-\u{3a1}\
            \u{3a3}-\u{3f5}\u{3f7}-\u{481}\u{48a}-\u{52f}\u{531}-\u{556}\u{10a0}-\u{10c5}\u{13a0}-\u{13f5}\
            \u{13f8}-\u{13fd}\u{1c90}-\u{1cba}\u{1cbd}-\u{1cbf}\u{1d00}-\u{1d2b}\u{1d6b}-\u{1d77}\u{1d79}-\u{1d9a}\
            \u{1e00}-\u{1f15}\u{1f18}-\u{1f1d}\u{1f20}-\u{1f45}\u{1f48}-\u{1f4d}\u{1f50}-\u{1f57}\u{1f59}\u{1f5b}\
            \u{1f5d}\u{1f5f}-\u{1f7d}\u{1f80}-\u{1fb4}\u{1fb6}-\u{1fbc}\u{1fbe}\u{1fc2}-\u{1fc4}\u{1fc6}-\u{1fcc}\
            \u{1fd0}-\u{1fd3}\u{1fd6}-\u{1fdb}\u{1fe0}-\u{1fec}\u{1ff2}-\u{1ff4}\u{1ff6}-\u{1ffc}\u{2102}\u{2107}\
            \u{210a}-\u{2113}\u{2115}\u{2119}-\u{211d}\u{2124}\u{2126}\u{2128}\u{212a}-\u{212d}\u{212f}-\u{2134}\
            \u{2139}\u{213c}-\u{213f}\u{2145}-\u{2149}\u{214e}\u{2183}\u{2184}\u{2c00}-\u{2c7b}\u{2c7e}-\u{2ce4}\
            \u{2ceb}-\u{2cee}\u{2cf2}\u{2cf3}\u{a640}-\u{a66d}\u{a680}-\u{a69b}\u{a722}-\u{a76f}\u{a771}-\u{a787}\
            \u{a78b}-\u{a78e}\u{ab70}-\u{abbf}\u{fb00}-\u{fb06}\u{fb13}-\u{fb17}\u{ff21}-\u{ff3a}\u{ff41}-\u{ff5a}\
            \u{10400}-\u{1044f}\u{104b0}-\u{104d3}\u{104d8}-\u{104fb}\u{10c80}-\u{10cb2}\u{10cc0}-\u{10cf2}\
            \u{118a0}-\u{118df}\u{1e900}-\u{1e943}";
        let listed = Pattern::new(&[&format!("[{LIST}]")]).unwrap();
        let letters = Pattern::new(&[DEEPSEEK_LETTERS.pattern]).unwrap();
        let wrong: Vec<String> = ('\0'..=char::MAX)
            .filter(|c| {
                let text = c.encode_utf8(&mut [0; 4]).to_owned();
                listed.find(text.as_bytes()).is_some() != letters.find(text.as_bytes()).is_some()
            })
            .map(|c| format!("{:x}", u32::from(c)))
            .collect();
        assert!(wrong.is_empty(), "{wrong:?}");
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
