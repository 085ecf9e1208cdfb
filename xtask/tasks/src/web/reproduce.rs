//! Whether the modules are the same wherever they are built.

use super::build::{self, Place};
use crate::{release, root};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use xtask::toolchain::{self, Choice};

/// Files that are not sources.
const NO_SOURCES: &[&str] = &[".git", "target", "dist", "dist.partial", "js/wasm", "js/wasm.partial", "models/cache"];

/// Builds them here and, from nothing, in other folders. True if not a byte differs.
pub fn run(choice: Choice) -> Result<bool> {
    let toolchain = toolchain::find(choice, true)?;
    let here = Place::here();
    build::run(toolchain, &here, true)?;
    let folder = tempfile::Builder::new().prefix("anygpu-elsewhere-").tempdir().context("cannot make a folder")?;
    // Of another length, too: it must not matter to anything.
    let there = Place {
        root: folder.path().join("the").join("sources"),
        target: folder.path().join("built"),
        cargo_home: cargo_home(folder.path())?,
    };
    copy("", &there.root)?;
    build::run(toolchain, &there, true)?;
    let (here, there) = (digests(&here.modules())?, digests(&there.modules())?);
    let (same, differing) = compare(&here, &there);
    println!("{} passed, {} failed", same.len(), differing.len());
    Ok(differing.is_empty() && !same.is_empty())
}

/// The files of two builds that are the same, and those that are not; shows them.
fn compare<'a>(here: &'a Digests, there: &'a Digests) -> (Vec<&'a String>, Vec<&'a String>) {
    let all: BTreeSet<&String> = here.keys().chain(there.keys()).collect();
    let (same, differing): (Vec<_>, Vec<_>) = all.into_iter().partition(|path| here.get(*path) == there.get(*path));
    for path in &same {
        println!("same    {}  {path}", here.get(*path).map_or("", String::as_str));
    }
    for path in &differing {
        println!("DIFFERS {path}");
    }
    (same, differing)
}

/// Digests of files, by path.
type Digests = BTreeMap<String, String>;

/// The digests of a folder's files, by path.
fn digests(folder: &Path) -> Result<Digests> {
    let sums = release::sums(folder)?;
    Ok(sums.lines().filter_map(|line| line.split_once("  ")).map(|(sum, path)| (path.into(), sum.into())).collect())
}

/// A folder that is cargo's own by another path, with what was downloaded, so that it need not be again. None where
/// there are no such links: then crates of the registry have the same path both times.
fn cargo_home(folder: &Path) -> Result<Option<PathBuf>> {
    #[cfg(unix)]
    {
        let usual = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
        let Some(usual) = std::env::var_os("CARGO_HOME").map(PathBuf::from).or(usual) else { return Ok(None) };
        let other = folder.join("home of cargo");
        fs::create_dir_all(&other)?;
        for entry in fs::read_dir(&usual).with_context(|| format!("cannot read {}", usual.display()))? {
            let entry = entry?;
            std::os::unix::fs::symlink(entry.path(), other.join(entry.file_name())).context("cannot make a link")?;
        }
        Ok(Some(other))
    }
    #[cfg(not(unix))]
    Ok(None)
}

/// Copies the sources of the workspace's folder `path`.
fn copy(path: &str, to: &Path) -> Result<()> {
    let from = root().join(path);
    fs::create_dir_all(to).with_context(|| format!("cannot make the folder {}", to.display()))?;
    for entry in fs::read_dir(&from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        let inner = format!("{path}{}", name.to_string_lossy());
        if kind.is_dir() && !NO_SOURCES.contains(&inner.as_str()) && name != "node_modules" {
            copy(&format!("{inner}/"), &to.join(&name))?;
        } else if kind.is_file() {
            fs::copy(entry.path(), to.join(&name))
                .with_context(|| format!("cannot copy {}", entry.path().display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_that_differ_are_found_out() {
        let build = |files: &[(&str, &str)]| -> Digests {
            files.iter().map(|(path, sum)| ((*path).to_owned(), (*sum).to_owned())).collect()
        };
        let (here, there) =
            (build(&[("a", "0"), ("b", "1"), ("c", "2")]), build(&[("a", "0"), ("b", "9"), ("d", "2")]));
        let (same, differing) = compare(&here, &there);
        assert_eq!(same, ["a"]);
        assert_eq!(differing, ["b", "c", "d"]);
        assert!(compare(&here, &here).1.is_empty());
    }
}
