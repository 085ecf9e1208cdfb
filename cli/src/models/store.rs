//! The downloaded models, in the user's cache folder. A JSON file beside the first file of each model describes it.

use super::download::beside;
use crate::{saved, text, tune};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Most levels of folders that are searched.
const DEPTH: usize = 12;

/// A downloaded model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    /// References by which it was requested; the first one names the file.
    pub asked: Vec<String>,
    /// The address that it was downloaded from.
    pub address: String,
    /// The files, which are in one folder.
    pub files: Vec<Kept>,
    /// Path of the first file.
    #[serde(skip)]
    pub path: PathBuf,
}

/// A file of a model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kept {
    pub name: String,
    /// `None` until the file is complete.
    pub bytes: Option<u64>,
    pub sha256: Option<String>,
}

impl Entry {
    /// Returns whether all files exist with their full length.
    pub fn is_whole(&self) -> bool {
        let has =
            |kept: &Kept| fs::metadata(self.path.with_file_name(&kept.name)).is_ok_and(|m| kept.bytes == Some(m.len()));
        !self.files.is_empty() && self.files.iter().all(has)
    }

    /// Returns the size of its files, including partial downloads.
    pub fn bytes(&self) -> u64 {
        self.here().map(|(_, bytes)| bytes).sum()
    }

    /// Returns the existing files, including partial downloads, with their sizes.
    fn here(&self) -> impl Iterator<Item = (PathBuf, u64)> {
        let files = self.files.iter().map(|file| self.path.with_file_name(&file.name));
        files.flat_map(|file| [beside(&file, "part"), file]).filter_map(|file| {
            let bytes = fs::metadata(&file).ok()?.len();
            Some((file, bytes))
        })
    }

    /// Writes the description.
    ///
    /// *Errors*: the file cannot be written.
    pub fn write(&self) -> Result<()> {
        let path = beside(&self.path, "json");
        let json = serde_json::to_string_pretty(self)?;
        fs::create_dir_all(path.parent().unwrap_or(&path))
            .and_then(|()| saved::replace(&path, json.as_bytes()))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Deletes the model's files and its description.
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

/// Returns the folder of the models.
///
/// *Errors*: no home folder is known.
pub fn root() -> Result<PathBuf> {
    Ok(tune::folder().context("no home folder is known, so models cannot be kept; name a file")?.join("models"))
}

/// Returns all downloaded models, sorted by name.
///
/// *Errors*: those of [`root`].
pub fn all() -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    walk(&root()?, DEPTH, &mut found);
    found.sort_by(|a, b| a.asked.cmp(&b.asked));
    Ok(found)
}

/// Returns the model that was requested by a name, if there is one.
///
/// *Errors*: those of [`root`].
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

/// Reads the description of a model. Unreadable files count as missing.
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
