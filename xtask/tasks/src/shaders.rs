//! Shaders as drivers get them: assembled from this tree and from another commit's, and compared.
//!
//! A change of one file of a shader changes hundreds of variants in the same way, so equal differences are told once.

use crate::{process, root};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Packages that assemble shaders.
const PACKAGES: [&str; 2] = ["anygpu-backend-webgpu", "anygpu-backend-webgl"];
/// Test of either package that writes its shaders.
const TEST: &str = "all_shaders_assemble";
/// Variable of the environment that names the folder to write to.
const SHADERS: &str = "SHADERS";

/// Options of the task.
#[derive(clap::Args)]
pub struct Options {
    /// Compare with the shaders of another commit, such as HEAD~1 or main
    #[arg(long, value_name = "COMMIT")]
    diff: Option<String>,
}

/// Assembles all shaders into target/shaders, and compares them with those of another commit.
pub fn run(options: &Options) -> Result<()> {
    let folder = root().join("target/shaders");
    let now = folder.join("now");
    let count = assemble(&root(), &now)?;
    println!("{count} shaders are in {}", now.display());
    let Some(commit) = &options.diff else { return Ok(()) };
    let (tree, before) = (folder.join("tree"), folder.join("before"));
    let checked_out = CheckedOut::new(commit, tree)?;
    let assembled = assemble(&checked_out.0, &before);
    drop(checked_out);
    let count = assembled.with_context(|| format!("{commit} cannot assemble its shaders for a comparison"))?;
    println!("{count} shaders of {commit} are in {}", before.display());
    let git = git(&["diff", "--no-index", "--no-color", "--no-renames"]).args([&before, &now]).output()?;
    ensure!(matches!(git.status.code(), Some(0 | 1)), "git diff: {}", String::from_utf8_lossy(&git.stderr));
    print!("{}", told(&String::from_utf8_lossy(&git.stdout)));
    Ok(())
}

/// A commit's tree in a folder of its own, until it is dropped.
struct CheckedOut(PathBuf);

impl CheckedOut {
    fn new(commit: &str, folder: PathBuf) -> Result<CheckedOut> {
        // One that an interrupted run has left.
        let _ = git(&["worktree", "remove", "--force"]).arg(&folder).output();
        let made = git(&["worktree", "add", "--quiet", "--detach"]).arg(&folder).arg(commit).output()?;
        ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr).trim());
        Ok(CheckedOut(folder))
    }
}

impl Drop for CheckedOut {
    fn drop(&mut self) {
        let _ = git(&["worktree", "remove", "--force"]).arg(&self.0).output();
    }
}

fn git(args: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.args(args).current_dir(root());
    git
}

/// Assembles the shaders of a tree into a folder; returns how many there are.
fn assemble(tree: &Path, to: &Path) -> Result<usize> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    for package in PACKAGES {
        let mut cargo = Command::new(process::cargo());
        cargo.args(["test", "--quiet", "--release", "--lib", "--package", package, TEST]).current_dir(tree);
        // Crates of others are compiled once for both trees.
        cargo.env("CARGO_TARGET_DIR", env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| root().join("target").into()));
        let out = cargo.env(SHADERS, to).output()?;
        if !out.status.success() {
            bail!("{package}: {}", String::from_utf8_lossy(&out.stderr));
        }
    }
    let folders =
        fs::read_dir(to).context("no test has written shaders: the commit is from before `cargo xtask shaders`")?;
    let counts = folders.map(|folder| Ok(fs::read_dir(folder?.path())?.count()));
    counts.sum()
}

/// Returns what the output of `git diff` says, each difference once with the shaders that have it.
fn told(diff: &str) -> String {
    let mut differences: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for file in diff.split("diff --git ").skip(1) {
        let name = file.lines().next().and_then(|line| line.rsplit('/').next()).unwrap_or_default();
        let added = file.contains("\nnew file mode");
        let body = match added || file.contains("\ndeleted file mode") {
            true => String::from(if added { "new\n" } else { "no longer there\n" }),
            // From the first hunk on, without the places of hunks, which differ from variant to variant.
            false => {
                let lines = file.lines().skip_while(|line| !line.starts_with("@@"));
                lines.map(|line| if line.starts_with("@@") { "@@\n".into() } else { format!("{line}\n") }).collect()
            }
        };
        differences.entry(body).or_default().push(name);
    }
    if differences.is_empty() {
        return "all are the same\n".into();
    }
    let mut all: Vec<_> = differences.into_iter().collect();
    all.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let one = |(body, names): &(String, Vec<&str>)| {
        let named = names.iter().take(3).copied().collect::<Vec<_>>().join(", ");
        let more = if names.len() > 3 { format!(" and {} more", names.len() - 3) } else { String::new() };
        format!("\n{named}{more}\n{body}")
    };
    all.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_of_many_shaders_is_told_once() {
        let file = |name: &str, at: usize| {
            format!(
                "diff --git a/x/{name} b/y/{name}\nindex 1..2\n--- a/x/{name}\n+++ b/y/{name}\n@@ -{at} +{at} @@\n-a\n+b\n"
            )
        };
        let diff = [file("one.wgsl", 3), file("two.wgsl", 9)].concat()
            + "diff --git a/y/three.wgsl b/y/three.wgsl\nnew file mode 100644\n--- /dev/null\n+++ b/y/three.wgsl\n@@ -0,0 +1 @@\n+a\n";
        assert_eq!(told(&diff), "\none.wgsl, two.wgsl\n@@\n-a\n+b\n\nthree.wgsl\nnew\n");
        assert_eq!(told(""), "all are the same\n");
    }
}
