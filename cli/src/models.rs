//! Models by name: `pull`, `ls`, `rm`, and the values of `--model`.

mod download;
mod hub;
mod reference;
mod store;

pub use download::agent;
pub use reference::Reference;

use crate::output;
use anygpu::native::split_names;
use anyhow::{Context, Result, bail};
use download::Fetched;
use reference::{hub, is_file};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use store::{Entry, Kept};

/// Returns the file of a reference, after downloading it if necessary. The built-in model is not a file.
///
/// *Errors*: the file cannot be downloaded.
pub fn file(reference: &Reference) -> Result<Option<PathBuf>> {
    match reference {
        Reference::BuiltIn => Ok(None),
        Reference::File(path) => Ok(Some(path.clone())),
        Reference::Address(_) | Reference::Hub { .. } => Ok(Some(fetched(reference)?.path)),
    }
}

/// The address of a model, and where its file is kept.
struct Place {
    /// The reference with the chosen file in it.
    name: String,
    address: String,
    /// Folder, relative to the folder of all models.
    folder: PathBuf,
    file: String,
}

/// Splits an address into the part before the file's name, the name, and the part after it.
fn split_address(address: &str) -> (&str, &str, &str) {
    let end = address.find(['?', '#']).unwrap_or(address.len());
    let begin = address[..end].rfind('/').map_or(0, |slash| slash + 1);
    (&address[..begin], &address[begin..end], &address[end..])
}

/// Converts a text to a safe file name.
fn safe(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    text.trim_start_matches('.').chars().map(plain).collect()
}

fn place(reference: &Reference) -> Result<Place> {
    match reference {
        Reference::BuiltIn => bail!("{reference} is in this program and need not be fetched"),
        Reference::File(path) => bail!(
            "{} is a file's name; to fetch a model give https://… or hf:OWNER/NAME, with :QUANT or :FILE behind it",
            path.display()
        ),
        Reference::Address(address) => {
            let address = raw(address);
            let (before, file, behind) = split_address(&address);
            let host = before.split('/').nth(2).unwrap_or_default();
            let digest = Sha256::digest(format!("{before}{behind}"));
            let digits: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
            let file = match safe(file) {
                name if name.to_ascii_lowercase().ends_with(".gguf") => name,
                name => format!("{name}.gguf"),
            };
            let folder = PathBuf::from("web").join(safe(host)).join(digits);
            Ok(Place { name: address.clone(), folder, file, address })
        }
        Reference::Hub { repo, wanted } => {
            let file = match wanted {
                Some(file) if is_file(file) => file.clone(),
                quant => {
                    let listed = download::fetch_text(&format!("{}/api/models/{repo}", hub()))?;
                    let names = hub::names(&listed)?;
                    hub::chosen(&names, quant.as_deref(), repo)?
                }
            };
            let encoded: Vec<String> = file.split('/').map(encoded).collect();
            let address = format!("{}/{repo}/resolve/main/{}", hub(), encoded.join("/"));
            let mut folder = PathBuf::from("hf").join(repo);
            let (folders, name) = file.rsplit_once('/').unwrap_or(("", &file));
            folder.extend(folders.split('/').filter(|part| !part.is_empty()).map(safe));
            Ok(Place { name: format!("hf:{repo}:{file}"), folder, file: safe(name), address })
        }
    }
}

/// Converts the address of a file's page on the hub to that of the file.
fn raw(address: &str) -> String {
    let hub = hub();
    let path = address.strip_prefix(&hub).filter(|path| path.starts_with('/'));
    let parts: Vec<&str> = path.unwrap_or_default().splitn(5, '/').collect();
    match parts[..] {
        ["", owner, name, "blob", rest] => format!("{hub}/{owner}/{name}/resolve/{rest}"),
        _ => address.into(),
    }
}

/// Percent-encodes a part of an address.
fn encoded(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|byte| if keep(byte) { char::from(byte).into() } else { format!("%{byte:02X}") }).collect()
}

fn fetched(reference: &Reference) -> Result<Entry> {
    let name = reference.to_string();
    if let Some(entry) = store::find(&name)?.filter(Entry::is_whole) {
        return Ok(entry);
    }
    let Place { name: whole_name, address, folder, file } = place(reference).with_context(|| name.clone())?;
    let folder = store::root()?.join(folder);
    // All files of a split model, whichever one is named.
    let files = split_names(&file).unwrap_or_else(|| vec![file.clone()]);
    let (before, named, behind) = split_address(&address);
    let remote = split_names(named).unwrap_or_else(|| vec![named.to_owned()]);
    let path = folder.join(files.first().unwrap_or(&file));
    let mut asked = store::find(&whole_name)?.map_or_else(|| vec![whole_name], |entry| entry.asked);
    if !asked.contains(&name) {
        asked.push(name);
    }
    let unknown = files.iter().map(|file| Kept { name: file.clone(), bytes: None, sha256: None }).collect();
    let mut entry = Entry { asked, address: address.clone(), files: unknown, path };
    // Written before the download, so that an interrupted one is listed and can be deleted.
    entry.write()?;
    let mut kept = Vec::new();
    for (file, remote) in files.iter().zip(&remote) {
        match download::fetch(&format!("{before}{remote}{behind}"), &folder.join(file)) {
            Ok(Fetched { bytes, sha256 }) => {
                kept.push(Kept { name: file.clone(), bytes: Some(bytes), sha256: Some(sha256) });
            }
            Err(error) => {
                if entry.bytes() == 0 {
                    entry.remove()?;
                }
                return Err(error);
            }
        }
    }
    entry.files = kept;
    entry.write()?;
    Ok(entry)
}

/// Runs `pull`.
pub fn pull(reference: &Reference) -> Result<()> {
    if matches!(reference, Reference::BuiltIn | Reference::File(_)) {
        place(reference)?;
    }
    let entry = fetched(reference)?;
    Ok(output::text(&format!("{}\n", entry.path.display()))?)
}

#[derive(Serialize)]
struct Listed<'a> {
    model: &'a str,
    bytes: u64,
    whole: bool,
    path: String,
    address: &'a str,
}

/// Runs `ls`.
pub fn list(json: bool) -> Result<()> {
    let all = store::all()?;
    let models: Vec<Listed<'_>> = all
        .iter()
        .map(|entry| Listed {
            model: entry.asked.first().map_or("", |name| name),
            bytes: entry.bytes(),
            whole: entry.is_whole(),
            path: entry.path.display().to_string(),
            address: &entry.address,
        })
        .collect();
    if json {
        return Ok(output::json(&serde_json::json!({ "models": models }))?);
    }
    let width = models.iter().map(|model| model.model.chars().count()).max().unwrap_or(0);
    for model in &models {
        let note = if model.whole { "" } else { "  not all of it is here; `pull` fetches the rest" };
        output::text(&format!("{:<width$}  {:>9.1} MB{note}\n", model.model, model.bytes as f64 / 1e6))?;
    }
    if models.is_empty() {
        output::note("no models were fetched; `anygpu pull hf:OWNER/NAME` fetches one");
    }
    Ok(())
}

/// Runs `rm`.
pub fn remove(reference: &Reference) -> Result<()> {
    let name = reference.to_string();
    let Some(entry) = store::find(&name)? else {
        bail!("{name} is not among the models that were fetched; `anygpu ls` lists them");
    };
    let bytes = entry.bytes();
    entry.remove()?;
    output::note(&format!("deleted {} ({:.1} MB)", entry.asked.first().unwrap_or(&name), bytes as f64 / 1e6));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_places_of_their_own() {
        let of = |text: &str| place(&text.parse().unwrap()).unwrap();
        let one = of("https://h:80/a/m-00001-of-00002.gguf?k=1");
        let two = of("https://h:80/a/m-00002-of-00002.gguf?k=1");
        assert_eq!((&one.folder, &*one.file), (&two.folder, "m-00001-of-00002.gguf"));
        assert_ne!(one.folder, of("https://h:80/b/m-00001-of-00002.gguf?k=1").folder);
        assert_eq!(of("https://h/..").file, ".gguf");
        let named = of("hf:o/r:a b/m.gguf");
        assert!(named.address.ends_with("/o/r/resolve/main/a%20b/m.gguf") && named.folder.ends_with("hf/o/r/a_b"));
        assert_eq!(raw(&format!("{}/o/r/blob/main/a/m.gguf", hub())), format!("{}/o/r/resolve/main/a/m.gguf", hub()));
        assert_eq!(raw("https://h/o/r/blob/main/m.gguf"), "https://h/o/r/blob/main/m.gguf");
    }
}
