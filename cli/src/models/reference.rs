//! Values of `--model`: a file, a URL, a model on a hub, or the built-in one.

use crate::embedded;
use std::env;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Address of the hub, unless `HF_ENDPOINT` names another one.
const HUB: &str = "https://huggingface.co";

/// A reference to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// The built-in model.
    BuiltIn,
    /// A local file.
    File(PathBuf),
    /// A URL.
    Address(String),
    /// A model on the hub, and which file or quantisation of it.
    Hub {
        /// `OWNER/NAME`.
        repo: String,
        /// The text after the colon.
        wanted: Option<String>,
    },
}

/// Returns the hub's address.
pub fn hub() -> String {
    let given = env::var("HF_ENDPOINT").ok().filter(|given| !given.is_empty());
    given.unwrap_or_else(|| HUB.into()).trim_end_matches('/').into()
}

/// Returns whether the text after the colon names a file rather than a quantisation.
pub fn is_file(wanted: &str) -> bool {
    wanted.to_ascii_lowercase().ends_with(".gguf")
}

impl FromStr for Reference {
    type Err = String;

    fn from_str(text: &str) -> Result<Reference, String> {
        if text == embedded::NAME {
            return Ok(Reference::BuiltIn);
        }
        if text.starts_with("https://") || text.starts_with("http://") {
            let what = text.split("://").nth(1).unwrap_or_default();
            let is_whole = what.split_once('/').is_some_and(|(host, path)| !host.is_empty() && !path.is_empty());
            let printable = text.chars().all(|c| c.is_ascii_graphic());
            return match is_whole && printable {
                true => Ok(Reference::Address(text.into())),
                false => {
                    Err(format!("{text:?} is not the address of a file; give one such as https://HOST/model.gguf"))
                }
            };
        }
        let Some(name) = text.strip_prefix("hf:") else { return Ok(Reference::File(text.into())) };
        let (repo, wanted) = name.split_once(':').map_or((name, None), |(repo, wanted)| (repo, Some(wanted)));
        let is_word = |word: &str| {
            !matches!(word, "" | "." | "..")
                && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        let words: Vec<&str> = repo.split('/').collect();
        let is_path = |path: &str| path.split('/').all(|part| is_word(&part.replace([' ', '+', '(', ')'], "_")));
        if words.len() != 2 || !words.iter().all(|word| is_word(word)) || !wanted.is_none_or(is_path) {
            return Err(format!(
                "{text:?} is not a model on the hub; give hf:OWNER/NAME, hf:OWNER/NAME:Q4_K_M or hf:OWNER/NAME:FILE.gguf"
            ));
        }
        Ok(Reference::Hub { repo: repo.into(), wanted: wanted.map(str::to_owned) })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::BuiltIn => f.write_str(embedded::NAME),
            Reference::File(path) => path.display().fmt(f),
            Reference::Address(address) => f.write_str(address),
            Reference::Hub { repo, wanted: Some(wanted) } => write!(f, "hf:{repo}:{wanted}"),
            Reference::Hub { repo, wanted: None } => write!(f, "hf:{repo}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_and_written() {
        let hub = |wanted: Option<&str>| Reference::Hub { repo: "o/r-1.5".into(), wanted: wanted.map(str::to_owned) };
        for (text, reference) in [
            ("gab", Reference::BuiltIn),
            ("./gab", Reference::File("./gab".into())),
            ("a:b.gguf", Reference::File("a:b.gguf".into())),
            ("https://h/m.gguf?a=b", Reference::Address("https://h/m.gguf?a=b".into())),
            ("hf:o/r-1.5", hub(None)),
            ("hf:o/r-1.5:q4_0", hub(Some("q4_0"))),
            ("hf:o/r-1.5:a/b.gguf", hub(Some("a/b.gguf"))),
        ] {
            assert_eq!(text.parse(), Ok(reference.clone()));
            assert_eq!(reference.to_string(), text);
        }
        for text in
            ["hf:", "hf:o", "hf:o/r/s", "hf:../r", "hf:o/r:", "hf:o/r:../../x.gguf", "hf:o/r:a\\b.gguf", "hf:o/r:/x"]
        {
            assert!(text.parse::<Reference>().is_err(), "{text}");
        }
        for text in ["https://", "https://h", "https://h/", "https:///m.gguf", "https://h/a b.gguf"] {
            assert!(text.parse::<Reference>().is_err(), "{text}");
        }
    }
}
