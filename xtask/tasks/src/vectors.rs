//! Vectors from the node tests of ONNX.

use crate::{python, root};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The package that makes the tests, and what its Python needs besides. Apache-2.0.
const PACKAGES: &[&str] = &["onnx==1.23.2", "numpy==2.3.5"];
/// Where a fetched package lies: a new version gets a folder of its own.
const FOLDER: &str = "target/onnx-1.23.2";
/// The tests, beside it.
const TESTS: &str = "node-tests";
/// The script and what it makes.
const VECTORS: &str = "conformance/vectors/onnx";
/// Files that the script writes.
const FILES: &[&str] = &["cases.json", "arrays.bin", "README.md"];

#[derive(Args)]
pub struct Options {
    /// Folder of other node tests: a folder each, with model.onnx and test_data_set_0 [default: those that `onnx` makes]
    #[arg(long, value_name = "DIR")]
    tests: Option<PathBuf>,
    /// Where to write
    #[arg(long, value_name = "DIR", default_value = VECTORS)]
    out: PathBuf,
    /// Write nothing; fail if what is there is not what would be written
    #[arg(long)]
    check: bool,
}

/// Writes the vectors, or compares them with what is there. True unless they differ.
pub fn run(options: &Options) -> Result<bool> {
    let python = python::find()?;
    let package = fetch(python)?;
    let tests = options.tests.clone().unwrap_or_else(|| package.join(TESTS));
    let out = root().join(&options.out);
    if !options.check {
        convert(python, &package, &tests, &out)?;
        println!("written to {}", options.out.display());
        return Ok(true);
    }
    let fresh = tempfile::tempdir().context("cannot make a folder for temporary files")?;
    convert(python, &package, &tests, fresh.path())?;
    let mut same = true;
    for name in FILES {
        if fs::read(fresh.path().join(name))? != fs::read(out.join(name)).unwrap_or_default() {
            println!("{} is not what `cargo xtask vectors` writes", options.out.join(name).display());
            same = false;
        }
    }
    Ok(same)
}

/// The folder with the package, which is fetched unless it is there.
fn fetch(python: &str) -> Result<PathBuf> {
    let folder = root().join(FOLDER);
    if folder.is_dir() {
        return Ok(folder);
    }
    println!("fetching the package {} (40 MB with what it needs)", PACKAGES[0]);
    // Beside the destination, so that the final rename stays within one file system.
    let staging = root().join(format!("{FOLDER}-{}", std::process::id()));
    let result = install(python, &staging, &folder);
    // Nothing depends on the folder being gone.
    let _ = fs::remove_dir_all(&staging);
    result.map(|()| folder)
}

fn install(python: &str, staging: &Path, folder: &Path) -> Result<()> {
    let status = Command::new(python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action", "ignore"])
        .args(["--only-binary", ":all:", "--target"])
        .arg(staging)
        .args(PACKAGES)
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {python}"))?;
    if !status.success() {
        bail!("pip could not install {}; check the network and pip's settings (the message is above)", PACKAGES[0]);
    }
    let tests = staging.join(TESTS);
    script(python, staging, "tests.py", &[("--out", tests.as_path())], "the package's tests could not be written")?;
    fs::rename(staging, folder).with_context(|| format!("cannot move the package to {}", folder.display()))
}

fn convert(python: &str, package: &Path, tests: &Path, out: &Path) -> Result<()> {
    script(python, package, "make.py", &[("--tests", tests), ("--out", out)], "the tests could not be converted")
}

/// Runs a script that lies beside the vectors.
fn script(python: &str, package: &Path, name: &str, options: &[(&str, &Path)], failed: &str) -> Result<()> {
    let status = Command::new(python)
        .arg(root().join(VECTORS).join(name))
        .args(options.iter().flat_map(|(option, path)| [OsStr::new(option), path.as_os_str()]))
        .env("PYTHONPATH", package)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {python}"))?;
    if !status.success() {
        bail!("{failed} (the message is above)");
    }
    Ok(())
}
