//! Other programs: finding them, and bounding their time.

use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// Where the shell would find a program.
pub fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let suffix = std::env::consts::EXE_SUFFIX;
    std::env::split_paths(&path).map(|folder| folder.join(format!("{name}{suffix}"))).find(|file| file.is_file())
}

/// Runs a program to its end. None if it took longer than the limit and was ended.
pub fn run_within(command: &mut Command, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let mut child = command.spawn()?;
    let begin = Instant::now();
    while begin.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(50));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}
