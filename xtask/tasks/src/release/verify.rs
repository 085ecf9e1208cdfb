//! Whether the folder of a release says the truth about itself.

use super::crates::{self, Crate};
use super::{NOTICES, PACKAGE, SBOM, SUMS, notices, sums};
use crate::{python, root};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The library of CycloneDX's own project, which has the schema.
const VALIDATOR: &str = "cyclonedx-python-lib[json-validation]==11.12.0";

const VALIDATE: &str = "
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
sys.exit(str(error).splitlines()[0][:250] if error else 0)
";

/// Checks `dist`: its digests, that the notices have each crate of the modules, and that the bill of materials is
/// valid. True if all is well.
pub fn run() -> Result<bool> {
    let folder = crate::web::dist::folder();
    let read = |path: &str| {
        fs::read_to_string(folder.join(path))
            .with_context(|| format!("cannot read dist/{path}; make it with `cargo xtask web --no-serve`"))
    };
    let mut is_good = true;
    let mut check = |what: &str, wrong: Vec<String>| {
        match wrong.is_empty() {
            true => println!("ok      {what}"),
            false => println!("FAILED  {what}: {}", wrong.join(", ")),
        }
        is_good &= wrong.is_empty();
    };
    check("digests of all files", differing(&read(SUMS)?, &sums(&folder)?));
    let shipped = crates::shipped()?;
    for path in [NOTICES.to_owned(), format!("{PACKAGE}/{NOTICES}")] {
        check(&format!("{path} has every crate"), unnamed(&shipped.crates, &read(&path)?));
    }
    check("the bill of materials is valid", invalid(&folder.join(SBOM))?);
    Ok(is_good)
}

/// Paths whose lines differ or that only one list has.
fn differing(listed: &str, found: &str) -> Vec<String> {
    let only = |a: &str, b: &str| -> Vec<String> {
        let known: Vec<&str> = b.lines().collect();
        a.lines()
            .filter(|line| !known.contains(line))
            .filter_map(|line| Some(line.split_once("  ")?.1.into()))
            .collect()
    };
    let mut all = [only(listed, found), only(found, listed)].concat();
    all.sort();
    all.dedup();
    all
}

/// Crates that the notices do not list.
fn unnamed(crates: &[Crate], notices: &str) -> Vec<String> {
    let titles = crates.iter().map(|one| notices::title(&one.name, &one.version));
    titles.filter(|title| !notices.lines().any(|line| line.starts_with(&format!("{title}  (")))).collect()
}

/// Returns the faults of a bill of materials.
fn invalid(file: &Path) -> Result<Vec<String>> {
    let (python, packages) = validator()?;
    let output = Command::new(python)
        .args(["-c", VALIDATE])
        .arg(file)
        .env("PYTHONPATH", packages)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {python}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Ok(if output.status.success() { Vec::new() } else { vec![said] })
}

/// Python, and the folder of the validator, which is fetched unless it is there.
fn validator() -> Result<(&'static str, PathBuf)> {
    let python = python::find()?;
    let folder = root().join("target").join("tools").join(VALIDATOR.replace(['[', ']', '='], "-"));
    if !folder.is_dir() {
        println!("fetching {VALIDATOR}");
        let partial = folder.with_extension("partial");
        let status = Command::new(python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-warn-conflicts"])
            .args(["--only-binary", ":all:", "--root-user-action", "ignore", "--upgrade", "--target"])
            .args([partial.as_os_str(), VALIDATOR.as_ref()])
            .stdin(Stdio::null())
            .status()
            .with_context(|| format!("cannot start {python}"))?;
        if !status.success() {
            bail!("pip could not fetch {VALIDATOR} (the message is above); check the network and pip's settings");
        }
        fs::rename(&partial, &folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    Ok((python, folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_changed_came_or_went_are_named() {
        let listed = "00  a\n11  b\n22  c d\n";
        assert!(differing(listed, listed).is_empty());
        assert_eq!(differing(listed, "00  a\n12  b\n33  e\n"), ["b", "c d", "e"]);
    }

    #[test]
    fn a_crate_that_the_notices_lack_is_named() {
        let shipped = crates::shipped().unwrap();
        let text = notices::text(&shipped).unwrap();
        assert!(unnamed(&shipped.crates, &text).is_empty());
        let without: Vec<&str> = text.lines().filter(|line| !line.starts_with("wgpu 3")).collect();
        let [missing] = &unnamed(&shipped.crates, &without.join("\n"))[..] else { panic!("not one crate") };
        assert!(missing.starts_with("wgpu 3"), "{missing}");
    }
}
