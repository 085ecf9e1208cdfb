//! Contents of a release: the work of others in it, their licences, and the digest of each file.

mod crates;
mod notices;
mod sbom;
mod sums;
mod verify;

pub use crates::of_registry;
pub use sums::{digest, sums};
pub use verify::run as verify;

use crate::root;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The licences of what others made.
const NOTICES: &str = "THIRD-PARTY-NOTICES.txt";
/// The components, as CycloneDX has them.
const SBOM: &str = "sbom.cdx.json";
/// The digests of all other files.
const SUMS: &str = "SHA256SUMS";

/// The package, in the folder of a release: people get it by itself.
const PACKAGE: &str = "anygpu";

/// Adds all of it to the folder of a release, whose modules a version of the compiler made.
///
/// *Errors*: something that ships has no text of its licence.
pub fn write(folder: &Path, rustc: &str) -> Result<()> {
    let package = fs::read_to_string(root().join("js/package.json")).context("cannot read js/package.json")?;
    let package: Value = serde_json::from_str(&package).context("js/package.json")?;
    has_no_dependencies(&package)?;
    let crates = crates::shipped()?;
    let notices = notices::text(&crates)?;
    write_to(&folder.join(NOTICES), &notices)?;
    write_to(&folder.join(PACKAGE).join(NOTICES), &notices)?;
    let sbom = sbom::of(&crates, &package, folder, rustc)?;
    write_to(&folder.join(SBOM), &format!("{sbom:#}\n"))?;
    write_to(&folder.join(SUMS), &sums(folder)?)
}

fn write_to(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// The package is plain modules: if it had dependencies, their licences would be missing here.
fn has_no_dependencies(package: &Value) -> Result<()> {
    for kind in ["dependencies", "bundleDependencies", "bundledDependencies", "optionalDependencies"] {
        if package.get(kind).is_some() {
            bail!(
                "js/package.json has {kind}: teach xtask/tasks/src/release about packages of npm before any of them ships"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_package_with_dependencies_is_refused() {
        has_no_dependencies(&json!({ "name": "anygpu", "devDependencies": { "a": "1" } })).unwrap();
        let refused = has_no_dependencies(&json!({ "dependencies": { "a": "1" } })).unwrap_err();
        assert!(refused.to_string().contains("has dependencies"), "{refused}");
    }
}
