//! Tokenizers: text to tokens and back, from a file's metadata.
//!
//! Encoding splits the text at special tokens. Each part is then encoded by byte-level BPE (`gpt2`), SentencePiece
//! (`llama`), WordPiece (`bert`), BPE of characters (`gemma4`), Unigram (`t5`), or the tokenizers of RWKV (`rwkv`) and
//! PLaMo 2 (`plamo2`). Results equal llama.cpp's, except where its pre-tokenization or normalization differs from the
//! publisher's: words of `gpt-4o`, `tekken` and `falcon`, WordPiece, and accents, which the tokenizers of Qwen, OLMo and
//! Command R compose.

mod bpe;
#[cfg(test)]
mod cases;
mod char_bpe;
mod charsmap;
mod eog;
mod merges;
mod normalize;
mod pair;
mod pattern;
mod plamo;
mod pre;
mod rwkv;
mod special;
mod spm;
mod stream;
#[cfg(test)]
mod tests;
mod trie;
mod unigram;
mod vocab;
mod wordpiece;

use crate::gguf::{GgufError, Metadata, StringArray, shown};
use std::sync::Arc;

use bpe::Bpe;
use char_bpe::CharBpe;
use pair::Pair;
use plamo::Plamo;
use pre::Pre;
use rwkv::Rwkv;
use special::{Fragment, Specials, Strips};
use spm::Spm;
pub use stream::StreamDecoder;
use unigram::Unigram;
pub use vocab::TokenKind;
use vocab::Vocab;
use wordpiece::WordPiece;

/// Byte that no UTF-8 text contains.
const NO_TEXT: u8 = 0xff;

/// Error of a file's tokenizer. The model can still be run on token ids.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TokenizerError {
    /// The file does not have a tokenizer.
    #[error("the file has no tokenizer (tokenizer.ggml.model); give token ids instead of text, or use another file")]
    Missing,
    /// The algorithm is not supported.
    #[error(
        "the tokenizer \"{0}\" is not supported, only \"gpt2\", \"llama\", \"bert\", \"gemma4\", \"t5\", \"rwkv\" and \
         \"plamo2\"; give token ids, or use another model"
    )]
    Model(String),
    /// The pre-tokenizer is not known.
    #[error("the pre-tokenizer \"{0}\" is not known; update this build, or give token ids instead of text")]
    Pre(String),
    /// An array's length is not that of the vocabulary.
    #[error("{key} has {found} entries for {tokens} tokens; convert the model again with a current converter")]
    Length {
        /// The metadata key.
        key: &'static str,
        /// Its length.
        found: usize,
        /// Size of the vocabulary.
        tokens: usize,
    },
    /// Metadata has values that cannot be used.
    #[error("{key} {reason}; convert the model again with a current converter")]
    Malformed {
        /// The metadata key.
        key: &'static str,
        /// Reason why it is refused.
        reason: &'static str,
    },
    /// A pre-tokenizer expression did not compile.
    #[error("a pre-tokenizer expression does not compile ({0}); report this as a bug")]
    Expression(String),
    /// Metadata is missing or of the wrong type.
    #[error(transparent)]
    Metadata(#[from] GgufError),
}

#[derive(Debug)]
enum Model {
    Bpe(Box<Bpe>),
    Spm(Box<Spm>),
    WordPiece(Box<WordPiece>),
    CharBpe(Box<CharBpe>),
    Unigram(Box<Unigram>),
    Rwkv(Box<Rwkv>),
    Plamo(Box<Plamo>),
}

/// Algorithms, by their names in files.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Algorithm {
    Bpe,
    Spm,
    WordPiece,
    CharBpe,
    Unigram,
    Rwkv,
    Plamo,
}

impl Algorithm {
    fn from_metadata(metadata: &Metadata) -> Result<Algorithm, TokenizerError> {
        match metadata.get::<&str>("tokenizer.ggml.model")? {
            None | Some("none") => Err(TokenizerError::Missing),
            Some("gpt2") => Ok(Algorithm::Bpe),
            Some("llama") => Ok(Algorithm::Spm),
            Some("bert") => Ok(Algorithm::WordPiece),
            Some("gemma4") => Ok(Algorithm::CharBpe),
            Some("t5") => Ok(Algorithm::Unigram),
            Some("rwkv") => Ok(Algorithm::Rwkv),
            Some("plamo2") => Ok(Algorithm::Plamo),
            Some(other) => Err(TokenizerError::Model(shown(other))),
        }
    }
}

/// Ids of tokens that mean the same in every vocabulary.
struct Marks {
    /// Begins a text.
    bos: Option<u32>,
    /// Ends a text.
    eos: Option<u32>,
    /// Separates texts.
    sep: Option<u32>,
    unknown: Option<u32>,
}

impl Marks {
    /// Reads the ids that a file gives. Where it gives none, they are those of the algorithm's first vocabulary. An unknown
    /// algorithm has none.
    fn from_metadata(metadata: &Metadata, algorithm: Option<Algorithm>, tokens: usize) -> Result<Marks, GgufError> {
        let id = |key: &str, default: Option<u32>| -> Result<Option<u32>, GgufError> {
            let known = |id: &u32| (*id as usize) < tokens;
            let id = metadata.get::<u32>(&format!("tokenizer.ggml.{key}_token_id"))?.filter(known);
            Ok(id.or(default.filter(known)))
        };
        let [bos, eos, sep, unknown] = match algorithm {
            Some(Algorithm::Bpe | Algorithm::CharBpe | Algorithm::Rwkv) | None => [None; 4],
            Some(Algorithm::Spm) => [Some(1), Some(2), None, Some(0)],
            Some(Algorithm::WordPiece) => [Some(101), None, Some(102), Some(100)],
            Some(Algorithm::Unigram) => [None, Some(1), None, Some(2)],
            Some(Algorithm::Plamo) => [Some(1), Some(2), None, Some(0)],
        };
        // GGUF misspells the separator.
        let [mut bos, mut eos, sep, unknown] =
            [id("bos", bos)?, id("eos", eos)?, id("seperator", sep)?, id("unknown", unknown)?];
        // Encoder models put a class token before a text and a separator after it.
        if algorithm == Some(Algorithm::Bpe) {
            bos = bos.or(id("cls", None)?);
        }
        if matches!(algorithm, Some(Algorithm::Bpe | Algorithm::WordPiece)) {
            eos = eos.or(sep);
        }
        Ok(Marks { bos, eos, sep, unknown })
    }
}

/// The texts of the tokens that begin and end a text, for templates; empty where there are none, or no tokenizer.
///
/// *Errors*: metadata is of the wrong type.
pub(crate) fn marks_of_text(metadata: &Metadata) -> Result<[String; 2], GgufError> {
    let tokens = metadata.get::<&Arc<StringArray>>("tokenizer.ggml.tokens")?;
    let Some(tokens) = tokens else { return Ok(Default::default()) };
    let Marks { bos, eos, .. } = Marks::from_metadata(metadata, Algorithm::from_metadata(metadata).ok(), tokens.len())?;
    Ok([bos, eos].map(|id| id.and_then(|id| tokens.get(id as usize)).unwrap_or_default().to_owned()))
}

/// A tokenizer.
#[derive(Debug)]
pub struct Tokenizer {
    vocab: Vocab,
    specials: Specials,
    model: Model,
    bos: Option<u32>,
    eos: Option<u32>,
    pair: Pair,
    eog: Vec<u32>,
    add_bos: bool,
    add_eos: bool,
    add_space_prefix: bool,
    clean_spaces: bool,
}

impl Tokenizer {
    /// Builds the tokenizer that a file describes.
    ///
    /// *Errors*: the file does not have a tokenizer, or its tokenizer is unsupported or malformed.
    pub fn from_metadata(metadata: &Metadata) -> Result<Tokenizer, TokenizerError> {
        let algorithm = Algorithm::from_metadata(metadata)?;
        let mut vocab = Vocab::from_metadata(metadata)?;
        let Marks { bos, eos, sep, unknown } = Marks::from_metadata(metadata, Some(algorithm), vocab.len())?;
        let flag = |key: &str, default: bool| -> Result<bool, GgufError> {
            Ok(metadata.get::<bool>(&format!("tokenizer.ggml.{key}"))?.unwrap_or(default))
        };
        let name = metadata.get::<&str>("tokenizer.ggml.pre")?.unwrap_or("default");
        let pre = if algorithm == Algorithm::Bpe { name } else { "default" };
        let pre = Pre::find(pre).ok_or_else(|| TokenizerError::Pre(shown(pre)))?;
        // Texts of WordPiece models always have both tokens around them, those of these others have none.
        let both = algorithm == Algorithm::WordPiece;
        let neither = matches!(algorithm, Algorithm::Rwkv | Algorithm::Plamo);
        let add_space_prefix = both || flag("add_space_prefix", algorithm == Algorithm::Spm)?;

        // Unigram knows tokens by the kinds that they have in the file.
        let model = match algorithm {
            Algorithm::Spm => Model::Spm(Spm::from_metadata(metadata, &vocab, unknown)?.into()),
            Algorithm::WordPiece => Model::WordPiece(WordPiece::from_metadata(metadata, unknown)?.into()),
            Algorithm::CharBpe => Model::CharBpe(CharBpe::from_metadata(metadata, &vocab, unknown)?.into()),
            Algorithm::Bpe => Model::Bpe(Bpe::from_metadata(metadata, &vocab, pre)?.into()),
            Algorithm::Unigram => {
                Model::Unigram(Unigram::from_metadata(metadata, &vocab, unknown, add_space_prefix)?.into())
            }
            Algorithm::Rwkv => Model::Rwkv(Rwkv::new(&vocab, unknown)?.into()),
            Algorithm::Plamo => Model::Plamo(Plamo::from_metadata(metadata, &vocab)?.into()),
        };
        let eog = eog::find(metadata, &mut vocab, eos)?;

        let add_bos = match algorithm {
            Algorithm::Bpe => pre.add_bos,
            // Texts of Gemma 4, which has BPE of characters, always begin with BOS.
            Algorithm::Spm | Algorithm::WordPiece | Algorithm::CharBpe => true,
            Algorithm::Unigram | Algorithm::Rwkv | Algorithm::Plamo => false,
        };
        let add_bos = flag("add_bos_token", add_bos)?;
        let add_eos = flag("add_eos_token", algorithm == Algorithm::Unigram)?;
        let add_sep = flag("add_sep_token", both || algorithm == Algorithm::Bpe && pre.add_sep)?;
        let if_added = |added: bool, id: Option<u32>| id.filter(|_| added);
        let model_name = metadata.get::<&str>("general.name")?.unwrap_or_default().to_lowercase();
        let arch = metadata.get::<&str>("general.architecture")?.unwrap_or_default();
        let strips = Strips {
            before_mask: matches!(arch, "nomic-bert-moe" | "jina-bert-v3")
                || matches!(name, "jina-v2-de" | "jina-v2-es" | "jina-v2-code"),
            after: model_name.contains("phi-3") || model_name.contains("phi3"),
        };
        let specials = Specials::new(&vocab, strips);
        Ok(Tokenizer {
            specials,
            model,
            bos,
            // The end of a WordPiece text is its separator, even if the file also has another end.
            eos: if both { sep } else { eos },
            pair: Pair {
                template: pair::template(metadata)?,
                bos: if_added(add_bos, bos),
                eos: if_added(add_eos, eos),
                sep: if_added(add_sep, sep),
            },
            eog,
            add_bos: both || add_bos && !neither,
            add_eos: both || add_eos && !neither,
            add_space_prefix,
            clean_spaces: both || algorithm == Algorithm::Bpe && pre.clean_spaces,
            vocab,
        })
    }

    /// Tokenizes a text. `add_special` adds the model's tokens around a text (BOS, EOS). `parse_special` recognises
    /// control tokens such as `<|im_end|>`; do not set it for text from users.
    pub fn encode(&self, text: &str, add_special: bool, parse_special: bool) -> Vec<u32> {
        let mut out = Vec::new();
        if add_special && self.add_bos {
            out.extend(self.bos);
        }
        let mut after_special = true;
        for fragment in self.specials.partition(&self.vocab, text, parse_special) {
            match fragment {
                Fragment::Token(id) => out.push(id),
                Fragment::Text(text) => match &self.model {
                    Model::Bpe(bpe) => bpe.encode(&self.vocab, text, &mut out),
                    Model::WordPiece(wordpiece) => wordpiece.encode(&self.vocab, text, &mut out),
                    Model::CharBpe(bpe) => bpe.encode(&self.vocab, text, &mut out),
                    Model::Unigram(unigram) => unigram.encode(text.as_bytes(), &mut out),
                    Model::Rwkv(rwkv) => rwkv.encode(text.as_bytes(), &mut out),
                    Model::Plamo(plamo) => plamo.encode(text, &mut out),
                    Model::Spm(spm) => {
                        let prefix = if self.add_space_prefix && after_special { spm::SPACE } else { "" };
                        spm.encode(&self.vocab, &(prefix.to_owned() + &text.replace(' ', spm::SPACE)), &mut out);
                    }
                },
            }
            after_special = matches!(fragment, Fragment::Token(_));
        }
        if add_special && self.add_eos {
            out.extend(self.eos);
        }
        out
    }

    /// Converts a whole sequence of tokens to text. `render_special` shows control tokens. Invalid UTF-8 becomes
    /// U+FFFD.
    pub fn decode(&self, ids: &[u32], render_special: bool) -> String {
        let mut bytes = Vec::new();
        for (i, &id) in ids.iter().enumerate() {
            self.write_piece(id, render_special, &mut bytes);
            // This space was added by encoding.
            if i == 0 && self.add_space_prefix && bytes.first() == Some(&b' ') {
                bytes.remove(0);
            }
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if self.clean_spaces { clean(text) } else { text }
    }

    /// Makes a decoder of tokens that are generated one by one.
    pub fn stream(&self) -> StreamDecoder {
        StreamDecoder::default()
    }

    /// Appends the bytes of a token, which may be incomplete characters.
    pub fn write_piece(&self, id: u32, render_special: bool, out: &mut Vec<u8>) {
        let text = self.vocab.text(id);
        match (self.vocab.kind(id), &self.model) {
            (TokenKind::Control | TokenKind::Unknown, _) if !render_special => {}
            (_, Model::Rwkv(_)) => out.extend(rwkv::unescape(text).unwrap_or_default()),
            (TokenKind::Control | TokenKind::Unknown, _) => out.extend(text.bytes()),
            (TokenKind::Byte, _) => out.extend(spm::byte_of(text)),
            (TokenKind::User, Model::Bpe(_) | Model::Unigram(_)) | (_, Model::Plamo(_)) => out.extend(text.bytes()),
            (TokenKind::Unused | TokenKind::Undefined, _) => {}
            (_, Model::Bpe(_)) => bpe::decode(text, out),
            (_, Model::Spm(_) | Model::WordPiece(_) | Model::CharBpe(_) | Model::Unigram(_)) => {
                for (i, part) in text.split(spm::SPACE).enumerate() {
                    if i > 0 {
                        out.push(b' ');
                    }
                    out.extend(part.bytes());
                }
            }
        }
    }

    /// Returns a token's bytes for building constrained answers: its text, or for a token without text the byte 0xff
    /// and its name. No text contains that byte. Empty for tokens that end a text, and for tokens that are not part of
    /// any UTF-8 text.
    pub fn word(&self, id: u32) -> Vec<u8> {
        let mut word = Vec::new();
        if self.is_eog(id) {
            return word;
        }
        self.write_piece(id, false, &mut word);
        if word.first() == Some(&NO_TEXT) {
            word.clear();
        } else if word.is_empty() {
            word.push(NO_TEXT);
            self.write_piece(id, true, &mut word);
            word.truncate(if word.len() > 1 { word.len() } else { 0 });
        }
        word
    }

    /// Returns the most bytes of text that one token stands for, apart from white space around special tokens. A text
    /// therefore has at least its length divided by this number of tokens. Nothing if a token may stand for a word of
    /// any length.
    ///
    /// *Units*: bytes.
    pub fn most_bytes(&self) -> Option<usize> {
        if matches!(self.model, Model::WordPiece(_) | Model::Unigram(_)) {
            return None;
        }
        let mut bytes = Vec::new();
        let lengths = (0..self.vocab.len() as u32).map(|id| {
            bytes.clear();
            self.write_piece(id, true, &mut bytes);
            bytes.len()
        });
        let shrinking = if let Model::Bpe(bpe) = &self.model { bpe.most_shrinking() } else { 1 };
        // An unknown token stands for a character of up to four bytes.
        Some(shrinking * lengths.max().unwrap_or_default().max(4))
    }

    /// Returns whether a token ends the generation.
    pub fn is_eog(&self, id: u32) -> bool {
        self.eog.binary_search(&id).is_ok()
    }

    /// Returns all tokens that end a generation, in ascending order.
    pub fn eog(&self) -> &[u32] {
        &self.eog
    }

    /// Returns the token that begins a text (BOS).
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// Returns the token that ends a text (EOS).
    pub fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// Returns whether encoding begins with [`Tokenizer::bos`].
    pub fn add_bos(&self) -> bool {
        self.add_bos
    }

    /// Returns whether encoding ends with [`Tokenizer::eos`].
    pub fn add_eos(&self) -> bool {
        self.add_eos
    }

    /// Returns the size of the vocabulary.
    pub fn vocab_len(&self) -> usize {
        self.vocab.len()
    }

    /// Returns the token as it is stored; empty if the id is out of range.
    pub fn token_text(&self, id: u32) -> &str {
        self.vocab.text(id)
    }

    /// Returns the kind of a token.
    pub fn token_kind(&self, id: u32) -> TokenKind {
        self.vocab.kind(id)
    }

    /// Returns the token that is stored with this text.
    pub fn token_id(&self, text: &str) -> Option<u32> {
        self.vocab.id(text)
    }
}

/// Removes the spaces that word tokenizers put before punctuation and English contractions.
fn clean(text: String) -> String {
    const RULES: &[(&str, &str)] = &[
        (" ?", "?"),
        (" !", "!"),
        (" .", "."),
        (" ,", ","),
        (" ' ", "'"),
        (" 's", "'s"),
        (" 'm", "'m"),
        (" 're", "'re"),
        (" 've", "'ve"),
    ];
    RULES.iter().fold(text, |text, (from, to)| if text.contains(from) { text.replace(from, to) } else { text })
}
