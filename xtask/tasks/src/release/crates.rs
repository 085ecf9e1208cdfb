//! The crates that are compiled into the wasm modules. Cargo itself says which: with the features that are really on,
//! for wasm32 alone, and without what only runs while building (macros and build scripts).

use crate::web::MODULES;
use crate::{process, root};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xtask::toolchain::TARGET;

/// A crate of somebody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crate {
    pub name: String,
    pub version: String,
    /// Its licence as SPDX writes it.
    pub license: String,
    /// Its sources.
    pub folder: PathBuf,
    /// SHA-256 of its package, from the lock file.
    pub sha256: String,
    /// Those among the shipped crates that it uses.
    pub uses: Vec<Id>,
}

/// A crate's name and version.
pub type Id = (String, String);

/// Contents of the modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shipped {
    /// Crates of others, by name and version.
    pub crates: Vec<Crate>,
    /// Those that the crates of this workspace use themselves.
    pub direct: Vec<Id>,
}

impl Crate {
    pub fn id(&self) -> Id {
        (self.name.clone(), self.version.clone())
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// None of a crate of the workspace.
    source: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// None of a normal dependency.
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// The crates of the modules.
pub fn shipped() -> Result<Shipped> {
    let compiled = compiled()?;
    let metadata = metadata(cargo())?;
    let checksums = checksums()?;
    let ids: BTreeMap<&str, Id> = metadata.packages.iter().map(|p| (p.id.as_str(), id(p))).collect();
    let uses: BTreeMap<&str, Vec<Id>> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), used(node, &ids, &compiled))).collect();
    let (mut crates, mut direct) = (Vec::new(), BTreeSet::new());
    let ours: BTreeSet<Id> = metadata.packages.iter().filter(|p| p.source.is_none()).map(id).collect();
    for package in metadata.packages.iter().filter(|package| compiled.contains(&id(package))) {
        let uses = uses.get(package.id.as_str()).cloned().unwrap_or_default();
        let mut others = uses.into_iter().filter(|used| !ours.contains(used));
        if package.source.is_none() {
            direct.extend(others);
            continue;
        }
        let named = || format!("{} {}", package.name, package.version);
        crates.push(Crate {
            name: package.name.clone(),
            version: package.version.clone(),
            // An old way to write it.
            license: package
                .license
                .as_ref()
                .with_context(|| format!("{} names no licence", named()))?
                .replace('/', " OR "),
            folder: package.manifest_path.parent().map(Path::to_owned).unwrap_or_default(),
            sha256: checksums.get(&id(package)).with_context(|| format!("Cargo.lock has no {}", named()))?.clone(),
            uses: others.by_ref().collect(),
        });
    }
    crates.sort_by_key(Crate::id);
    Ok(Shipped { crates, direct: direct.into_iter().collect() })
}

/// Where a cargo has the crates of the registry: the folders above their own.
pub fn of_registry(cargo: Command) -> Result<BTreeSet<PathBuf>> {
    let packages = metadata(cargo)?.packages;
    let folders = packages.iter().filter(|package| package.source.is_some()).map(|package| &package.manifest_path);
    Ok(folders.filter_map(|manifest| Some(manifest.parent()?.parent()?.to_owned())).collect())
}

fn id(package: &Package) -> Id {
    (package.name.clone(), package.version.clone())
}

/// The shipped crates that one uses when it runs.
fn used(node: &Node, ids: &BTreeMap<&str, Id>, compiled: &BTreeSet<Id>) -> Vec<Id> {
    let normal = node.deps.iter().filter(|dep| dep.dep_kinds.iter().any(|kind| kind.kind.is_none()));
    let mut used: Vec<Id> = normal.filter_map(|dep| ids.get(dep.pkg.as_str())).cloned().collect();
    used.retain(|id| compiled.contains(id));
    used.sort();
    used
}

/// Returns the packages that cargo compiles into the modules, crates of the workspace included.
fn compiled() -> Result<BTreeSet<Id>> {
    let mut tree = cargo();
    tree.args(["tree", "--locked", "--target", TARGET, "--edges", "normal,no-proc-macro"]);
    tree.args(["--prefix", "none", "--format", "{p}"]);
    tree.args(MODULES.iter().flat_map(|module| ["--package", module.package]));
    let found: BTreeSet<Id> = output(tree)?.lines().filter_map(crate_of_line).collect();
    if found.len() < MODULES.len() {
        bail!("cargo tree names no crates");
    }
    Ok(found)
}

/// The crate of a line such as `half v2.7.1 (*)`.
fn crate_of_line(line: &str) -> Option<Id> {
    let mut words = line.split(' ');
    let (name, version) = (words.next()?, words.next()?);
    Some((name.to_owned(), version.strip_prefix('v')?.to_owned()))
}

/// This workspace's cargo, before its arguments. It is asked about the modules with threads: they have all crates of the others.
fn cargo() -> Command {
    let mut cargo = Command::new(process::cargo());
    cargo.current_dir(root());
    cargo.env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+atomics").env("RUSTC_BOOTSTRAP", "1");
    cargo
}

fn metadata(mut cargo: Command) -> Result<Metadata> {
    cargo.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", TARGET]);
    serde_json::from_str(&output(cargo)?).context("cargo metadata is not as expected")
}

fn checksums() -> Result<BTreeMap<Id, String>> {
    let lock = fs::read_to_string(root().join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let lock: Lock = toml::from_str(&lock).context("Cargo.lock is not as expected")?;
    Ok(lock.package.into_iter().filter_map(|p| Some(((p.name, p.version), p.checksum?))).collect())
}

/// Returns the output of a command.
fn output(mut command: Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("cargo cannot say what the modules are made of: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("cargo's answer is not a text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_in_browsers_is_found_and_what_only_builds_is_not() {
        let shipped = shipped().unwrap();
        let has = |name: &str| shipped.crates.iter().any(|c| c.name == name);
        for name in ["wasm-bindgen", "wgpu", "glow", "serde_json", "pulp", "hashbrown", "rayon"] {
            assert!(has(name), "{name}");
        }
        // A macro, a crate of macros, one for other systems, one of tests, one of tasks, one of ours.
        for name in ["paste", "syn", "khronos-egl", "proptest", "clap", "anygpu-model"] {
            assert!(!has(name), "{name}");
        }
        let ids: BTreeSet<Id> = shipped.crates.iter().map(Crate::id).collect();
        let used: Vec<Id> = shipped.crates.iter().flat_map(|c| c.uses.clone()).chain(shipped.direct.clone()).collect();
        assert!(used.iter().all(|id| ids.contains(id)));
        // Whatever ships is used by something that ships.
        assert_eq!(used.into_iter().collect::<BTreeSet<_>>(), ids);
    }

    #[test]
    fn lines_of_a_tree_are_read() {
        let id = |name: &str, version: &str| Some((name.to_owned(), version.to_owned()));
        assert_eq!(crate_of_line("half v2.7.1 (*)"), id("half", "2.7.1"));
        assert_eq!(crate_of_line("anygpu v0.1.0 (/somewhere/engine)"), id("anygpu", "0.1.0"));
        assert_eq!(crate_of_line(""), None);
        assert_eq!(crate_of_line("[build-dependencies]"), None);
    }
}
