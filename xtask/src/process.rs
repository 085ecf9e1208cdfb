//! Other programs: finding them, and bounding their time.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a program may take to end by itself.
const GRACE: Duration = Duration::from_secs(3);

/// Where the shell would find a program.
pub fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let suffix = std::env::consts::EXE_SUFFIX;
    std::env::split_paths(&path).map(|folder| folder.join(format!("{name}{suffix}"))).find(|file| file.is_file())
}

/// The cargo that started this program, or that of PATH.
pub fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The processor of this machine, as its system names it, and how many of it a program may use.
pub fn machine() -> String {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let facts = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = facts.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned());
    format!("{model}, {cpus} CPUs")
}

/// How this task was called, without the file that its result goes to.
pub fn command_line() -> String {
    let mut words = vec!["cargo xtask".to_owned()];
    let mut args = std::env::args().skip(1);
    while let Some(word) = args.next() {
        if word == "--json" {
            args.next();
        } else if !word.starts_with("--json=") {
            words.push(word);
        }
    }
    words.join(" ")
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

/// A program with everything that it starts, and what it prints. Dropping it ends all of them.
pub struct Group {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

impl Group {
    /// Starts a program in a process group of its own. Each line that it prints is kept, and handed on.
    pub fn start(command: &mut Command, on_line: impl FnMut(&str) + Send + Clone + 'static) -> io::Result<Group> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let log = Arc::new(Mutex::new(Vec::new()));
        let follow = |output: Box<dyn Read + Send>| {
            let (log, mut on_line) = (Arc::clone(&log), on_line.clone());
            thread::spawn(move || {
                for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                    let line = String::from_utf8_lossy(&line).into_owned();
                    on_line(&line);
                    log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
                }
            });
        };
        if let Some(output) = child.stdout.take() {
            follow(Box::new(output));
        }
        if let Some(output) = child.stderr.take() {
            follow(Box::new(output));
        }
        Ok(Group { child, log })
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// The last lines that it printed.
    pub fn tail(&self, lines: usize) -> String {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log[log.len().saturating_sub(lines)..].join("\n")
    }

    #[cfg(unix)]
    fn signal(&self, signal: nix::sys::signal::Signal) -> bool {
        let Ok(id) = i32::try_from(self.child.id()) else { return false };
        nix::sys::signal::killpg(nix::unistd::Pid::from_raw(id), signal).is_ok()
    }
}

impl Drop for Group {
    #[cfg(unix)]
    fn drop(&mut self) {
        use nix::sys::signal::Signal;
        // A group exists as long as one of its processes does, so the number cannot mean others meanwhile.
        let begin = Instant::now();
        self.signal(Signal::SIGTERM);
        while begin.elapsed() < GRACE && self.child.try_wait().is_ok_and(|status| status.is_none()) {
            thread::sleep(Duration::from_millis(20));
        }
        self.signal(Signal::SIGKILL);
        // It is gone already, or nothing can be done about it.
        let _ = self.child.wait();
    }

    #[cfg(not(unix))]
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
