//! Choice among a model's files on the hub. The web page and the npm package choose in the same way.

use anygpu::native::split_names;
use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// Quantisations in order of preference, if none is requested: small, and nearly as good as the original.
const PREFERRED: [&str; 3] = ["Q4_K_M", "Q4_0", "Q8_0"];
/// Most file names in an error message.
const SHOWN: usize = 20;

#[derive(Deserialize)]
struct Listed {
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
}

/// Parses the names of a model's files from the hub's response.
///
/// *Errors*: the response is not a list of files.
pub fn names(json: &str) -> Result<Vec<String>> {
    let listed: Listed = serde_json::from_str(json).context("the hub did not return a file list")?;
    Ok(listed.siblings.into_iter().map(|sibling| sibling.rfilename).collect())
}

/// Returns the requested file of a model; for a split model, its first part.
///
/// *Errors*: no file fits, or several do.
pub fn chosen(names: &[String], quant: Option<&str>, repo: &str) -> Result<String> {
    let mut models: Vec<&str> = names.iter().map(|name| &**name).filter(|name| is_model(name)).collect();
    models.sort_unstable();
    let Some(first) = models.first() else {
        bail!("{repo} has no GGUF file; choose another model, such as one with GGUF in its name");
    };
    let asked = quant.map_or(PREFERRED.to_vec(), |quant| vec![quant]);
    let found = asked.iter().map(|one| having(&models, one)).find(|some| !some.is_empty());
    let found = found.unwrap_or_else(|| if quant.is_none() { models.clone() } else { Vec::new() });
    if let [one] = found[..] {
        return Ok(one.to_owned());
    }
    let (all, what) = match found.is_empty() {
        true => (&models, format!("no file with {}", quant.unwrap_or_default())),
        false => (&found, "several files that may be meant".into()),
    };
    let more = if all.len() > SHOWN { format!(", and {} others", all.len() - SHOWN) } else { String::new() };
    let shown = all[..all.len().min(SHOWN)].join(", ");
    bail!("{repo} has {what}; name one of these, as in hf:{repo}:{}: {shown}{more}", all.first().unwrap_or(first))
}

/// Returns whether a file is a model, or the first part of one. Projectors (`mmproj`), which belong to vision models,
/// do not count.
fn is_model(name: &str) -> bool {
    let (lower, file) = (name.to_ascii_lowercase(), name.rsplit('/').next().unwrap_or(name));
    let is_first = split_names(file).is_none_or(|names| names.first().is_some_and(|first| first == file));
    lower.ends_with(".gguf") && !file.to_ascii_lowercase().starts_with("mmproj") && is_first
}

/// Returns the names with a quantisation. Names that have it as a whole word are preferred: Q4_K is also a part of
/// Q4_K_M.
fn having<'n>(names: &[&'n str], quant: &str) -> Vec<&'n str> {
    let wanted = quant.to_ascii_lowercase();
    let some: Vec<&str> = names.iter().copied().filter(|name| name.to_ascii_lowercase().contains(&wanted)).collect();
    let is_apart = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let has_word = |name: &&&str| name.to_ascii_lowercase().split(is_apart).any(|word| word == wanted);
    let words: Vec<&str> = some.iter().filter(has_word).copied().collect();
    if words.is_empty() { some } else { words }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(names: &[&str], quant: Option<&str>) -> Result<String, String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        chosen(&names, quant, "o/r").map_err(|error| error.to_string())
    }

    #[test]
    fn the_file_that_is_meant_is_chosen() {
        let all = [
            "README.md",
            "m-Q8_0.gguf",
            "m-Q4_0.gguf",
            "m-Q4_K_M.gguf",
            "m-Q4_K_S.gguf",
            "big/m-BF16-00002-of-00002.gguf",
            "big/m-BF16-00001-of-00002.gguf",
            "mmproj-m-Q4_K_M.gguf",
        ];
        for (quant, file) in [
            (None, "m-Q4_K_M.gguf"),
            (Some("q8_0"), "m-Q8_0.gguf"),
            (Some("Q4_K_S"), "m-Q4_K_S.gguf"),
            (Some("bf16"), "big/m-BF16-00001-of-00002.gguf"),
        ] {
            assert_eq!(choose(&all, quant), Ok(file.into()), "{quant:?}");
        }
        assert_eq!(choose(&all[..3], None), Ok("m-Q4_0.gguf".into()));
        assert_eq!(choose(&["a-Q2_K.gguf", "x"], None), Ok("a-Q2_K.gguf".into()));
        let several = choose(&all, Some("Q4_K")).unwrap_err();
        assert!(several.contains("m-Q4_K_M.gguf, m-Q4_K_S.gguf") && !several.contains("Q8_0"), "{several}");
        let none = choose(&all, Some("Q5_0")).unwrap_err();
        assert!(none.contains("no file with Q5_0") && none.contains("m-Q8_0.gguf"), "{none}");
        assert!(choose(&["a-Q2_K.gguf", "a-Q3_K.gguf"], None).is_err());
        assert!(choose(&["a.safetensors"], None).unwrap_err().contains("no GGUF file"));
        assert_eq!(names(r#"{"siblings": [{"rfilename": "a"}], "id": 1}"#).unwrap(), ["a"]);
        assert!(names("<html>").is_err());
    }
}
