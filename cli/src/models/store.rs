//! The models that were fetched, among the user's cached files. Beside the file of each, or the first of several, lies what
//! is known of it.

use super::download::beside;
use crate::{saved, text, tune};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Folders within folders at most.
const DEPTH: usize = 12;

/// What is known of a model that was fetched.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    /// What it was asked for by; the first names the file.
    pub asked: Vec<String>,
    /// Where it came from.
    pub address: String,
    /// Its files, which lie in one folder.
    pub files: Vec<Kept>,
    /// The first of them.
    #[serde(skip)]
    pub path: PathBuf,
}

/// A file of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kept {
    pub name: String,
    /// None until it is here.
    pub bytes: Option<u64>,
    pub sha256: Option<String>,
}

impl Entry {
    /// Whether all of its files are there, as long as they were.
    pub fn is_whole(&self) -> bool {
        let has =
            |kept: &Kept| fs::metadata(self.path.with_file_name(&kept.name)).is_ok_and(|m| kept.bytes == Some(m.len()));
        !self.files.is_empty() && self.files.iter().all(has)
    }

    /// Bytes of its files that are here, and of those that were not fetched to their ends.
    pub fn bytes(&self) -> u64 {
        self.here().map(|(_, bytes)| bytes).sum()
    }

    /// What is here of its files, and how long it is.
    fn here(&self) -> impl Iterator<Item = (PathBuf, u64)> {
        let files = self.files.iter().map(|file| self.path.with_file_name(&file.name));
        files.flat_map(|file| [beside(&file, "part"), file]).filter_map(|file| {
            let bytes = fs::metadata(&file).ok()?.len();
            Some((file, bytes))
        })
    }

    /// Writes what is known.
    ///
    /// *Errors*: it cannot be written.
    pub fn write(&self) -> Result<()> {
        let path = beside(&self.path, "json");
        let json = serde_json::to_string_pretty(self)?;
        fs::create_dir_all(path.parent().unwrap_or(&path))
            .and_then(|()| saved::replace(&path, json.as_bytes()))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Deletes it.
    ///
    /// *Errors*: a file cannot be deleted.
    pub fn remove(&self) -> Result<()> {
        let tagged = self.here().flat_map(|(file, _)| [beside(&file, "tag"), file]).filter(|file| file.exists());
        for file in tagged.chain([beside(&self.path, "json")]) {
            fs::remove_file(&file).with_context(|| format!("cannot delete {}", file.display()))?;
        }
        Ok(())
    }
}

/// Where models are kept.
///
/// *Errors*: no home folder is known.
pub fn root() -> Result<PathBuf> {
    Ok(tune::folder().context("no home folder is known, so models cannot be kept; name a file")?.join("models"))
}

/// All that are there, by name.
///
/// *Errors*: as [`root`].
pub fn all() -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    walk(&root()?, DEPTH, &mut found);
    found.sort_by(|a, b| a.asked.cmp(&b.asked));
    Ok(found)
}

/// The one that was asked for by a name, if it is there.
///
/// *Errors*: as [`root`].
pub fn find(name: &str) -> Result<Option<Entry>> {
    Ok(all()?.into_iter().find(|entry| entry.asked.iter().any(|asked| asked == name)))
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<Entry>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in entries {
        match path.is_dir() {
            true if depth > 0 => walk(&path, depth - 1, found),
            true => {}
            false => found.extend(read(&path)),
        }
    }
}

/// What lies beside a model; what cannot be read is as if it were not there.
fn read(path: &Path) -> Option<Entry> {
    let model = path.with_extension("");
    if path.extension()? != "json" || !model.extension()?.eq_ignore_ascii_case("gguf") {
        return None;
    }
    let text = text::read(File::open(path).ok()?, "it").ok()?;
    let entry: Entry = serde_json::from_str(&text).ok()?;
    let is_name = |kept: &Kept| !kept.name.contains(['/', '\\']);
    entry.files.iter().all(is_name).then_some(Entry { path: model, ..entry })
}
