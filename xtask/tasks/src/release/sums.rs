//! The digests of a folder's files, as `sha256sum --check` reads them.

use super::SUMS;
use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

/// SHA-256 in hexadecimal digits.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A line for each file of a folder but the list itself, by path.
pub fn sums(folder: &Path) -> Result<String> {
    let mut lines = Vec::new();
    add(folder, "", &mut lines)?;
    lines.sort();
    Ok(lines.into_iter().map(|(path, digest)| format!("{digest}  {path}\n")).collect())
}

/// Adds the files of a folder; `prefix` is its path.
fn add(folder: &Path, prefix: &str, lines: &mut Vec<(String, String)>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            add(&entry.path(), &format!("{path}/"), lines)?;
        } else if path != SUMS {
            let bytes = fs::read(entry.path()).with_context(|| format!("cannot read {}", entry.path().display()))?;
            lines.push((path, digest(&bytes)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_line_and_the_list_itself_none() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("b")).unwrap();
        for (path, text) in [("b/c.txt", "abc"), ("a", ""), (SUMS, "old")] {
            fs::write(folder.path().join(path), text).unwrap();
        }
        // Of nothing, and of "abc", as FIPS 180-2 has it.
        let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sums(folder.path()).unwrap(), format!("{nothing}  a\n{abc}  b/c.txt\n"));
    }
}
