//! A process with all that it started, as Linux shows it in `/proc`. Other systems have no such thing, and get `None`.

use std::collections::HashMap;
use std::fs;

/// Numbers of a process in `/proc/PID/stat`, counted after its name: the parent, and the time spent, for itself and in the
/// system, by it and by children of it that have ended.
const PARENT: usize = 1;
const TIMES: [usize; 4] = [11, 12, 13, 14];

/// Whether this system has it.
pub fn is_visible() -> bool {
    fs::metadata("/proc/self/smaps_rollup").is_ok()
}

/// The numbers of a process, without its id and its name, which may hold blanks and brackets.
fn numbers(process: &str) -> Option<Vec<u64>> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    // The first is a letter, and some are negative: nothing here needs those.
    Some(rest.split_ascii_whitespace().map(|number| number.parse().unwrap_or(0)).collect())
}

/// A process and all that descend from it.
pub fn members(root: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for name in entries.flatten().map(|entry| entry.file_name()) {
        let Some(name) = name.to_str() else { continue };
        let Ok(id) = name.parse() else { continue };
        // Processes that have ended meanwhile are left out.
        let Some(parent) = numbers(name).and_then(|n| n.get(PARENT).copied()) else { continue };
        children.entry(parent as u32).or_default().push(id);
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(process) = found.get(next) {
        found.extend(children.remove(process).unwrap_or_default());
        next += 1;
    }
    found
}

/// Memory of a process. *Units*: bytes.
#[derive(Debug, Clone, Copy)]
pub struct Held {
    /// Its proportional set size: memory of its own, and its share of what several use.
    pub all: u64,
    /// Memory that is not of files, which programs beside it share.
    pub own: u64,
}

/// Returns the memory of a process. None if it has ended, or belongs to somebody else.
pub fn held(process: u32) -> Option<Held> {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let of = |name: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes << 10)
    };
    let all = of("Pss:")?;
    // Linux tells the parts from 5.4 on.
    let own = of("Pss_Anon:").zip(of("Pss_Shmem:")).map_or(all, |(anonymous, shared)| anonymous + shared);
    Some(Held { all, own })
}

/// Returns Chromium's name for a process: `renderer`, `gpu-process` and others.
pub fn kind(process: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{process}/cmdline")).ok()?;
    // A process that writes over its command line puts blanks between the words.
    let mut words = line.split(|byte| matches!(byte, 0 | b' '));
    words.find_map(|word| Some(String::from_utf8_lossy(word.strip_prefix(b"--type=")?).into_owned()))
}

/// Work of the processors since the machine started, in ticks.
#[derive(Clone, Copy)]
struct Ticks {
    busy: u64,
    all: u64,
    /// For this process and all that it has started.
    own: u64,
}

impl Ticks {
    fn now() -> Option<Ticks> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // User, nice, system, idle, waiting for disks, interrupts of two kinds, stolen. What follows is counted in these.
        let parts: Vec<u64> = line.split_ascii_whitespace().take(8).map(|n| n.parse().unwrap_or(0)).collect();
        let (all, idle) = (parts.iter().sum::<u64>(), parts.iter().skip(3).take(2).sum::<u64>());
        let times = |id: u32| numbers(&id.to_string()).map(|n| TIMES.iter().filter_map(|at| n.get(*at)).sum::<u64>());
        let own = members(std::process::id()).into_iter().filter_map(times).sum();
        Some(Ticks { busy: all.saturating_sub(idle), all, own })
    }
}

/// How much of the machine others use while something is measured.
pub struct OtherLoad(Ticks);

impl OtherLoad {
    /// Starts watching.
    pub fn start() -> Option<OtherLoad> {
        Ticks::now().map(OtherLoad)
    }

    /// The part of all processors' time since then that went to others than this process and those that it has started.
    /// They must still run.
    pub fn fraction(&self) -> Option<f64> {
        let (from, to) = (self.0, Ticks::now()?);
        let [busy, own, all] =
            [(to.busy, from.busy), (to.own, from.own), (to.all, from.all)].map(|(to, from)| to.saturating_sub(from));
        Some(busy.saturating_sub(own) as f64 / all.max(1) as f64)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_found_below_the_one_that_started_it() {
        // Says that it runs, then reads until it is ended; arguments after its script mean nothing to it.
        let mut command = Command::new("sh");
        command.args(["-c", "echo; read line", "--type=renderer"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Until a new program runs, the system may show no words of its command line.
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let own = std::process::id();
        let found = members(own);
        assert_eq!(found[0], own);
        assert!(found.contains(&child.id()));
        // Written to, so that it is held: a vector of zeros may only be promised.
        let held = std::hint::black_box(vec![1u8; 4 << 20]);
        assert!(super::held(own).unwrap().own > held.len() as u64);
        assert_eq!(kind(own), None);
        assert_eq!(kind(child.id()).as_deref(), Some("renderer"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!members(own).contains(&child.id()));
    }
}
