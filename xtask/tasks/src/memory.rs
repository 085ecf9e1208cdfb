//! Memory of a browser: all its processes are sampled while it runs.

use crate::tree::{self, Held};
use serde::Serialize;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The time between two samples.
pub const INTERVAL: Duration = Duration::from_millis(200);

/// The most that was held in a part of a run. Proportional set sizes, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Peak {
    /// Phase that the page reported.
    pub phase: String,
    /// How many samples were taken.
    pub samples: usize,
    /// All processes together.
    pub tree_bytes: u64,
    /// The least that they held together of their own, without what is in files.
    pub least_own_bytes: u64,
    /// The renderers and the GPU process together, where the browser names them.
    pub renderer_gpu_bytes: Option<u64>,
    /// The renderers.
    pub renderer_bytes: Option<u64>,
    /// The GPU process.
    pub gpu_bytes: Option<u64>,
}

impl Peak {
    /// One sample of all processes below one.
    fn now(root: u32) -> Peak {
        let mut peak = Peak { samples: 1, ..Peak::default() };
        for process in tree::members(root) {
            // It may have ended.
            let Some(Held { all: size, own }) = tree::held(process) else { continue };
            peak.tree_bytes += size;
            peak.least_own_bytes += own;
            let part = match tree::kind(process).as_deref() {
                Some("renderer") => &mut peak.renderer_bytes,
                Some("gpu-process") => &mut peak.gpu_bytes,
                _ => continue,
            };
            *part.get_or_insert(0) += size;
            *peak.renderer_gpu_bytes.get_or_insert(0) += size;
        }
        peak
    }

    /// The more of each.
    fn join(&mut self, other: &Peak) {
        self.least_own_bytes = match self.samples {
            0 => other.least_own_bytes,
            _ => self.least_own_bytes.min(other.least_own_bytes),
        };
        self.samples += other.samples;
        self.tree_bytes = self.tree_bytes.max(other.tree_bytes);
        self.renderer_gpu_bytes = self.renderer_gpu_bytes.max(other.renderer_gpu_bytes);
        self.renderer_bytes = self.renderer_bytes.max(other.renderer_bytes);
        self.gpu_bytes = self.gpu_bytes.max(other.gpu_bytes);
    }
}

/// Peaks of a run, and of each of its phases.
#[derive(Debug, Clone, Serialize)]
pub struct Peaks {
    /// Peak of the whole run.
    #[serde(flatten)]
    pub run: Peak,
    /// Peak of each phase that the page reported.
    pub phases: Vec<Peak>,
}

/// Looks at the processes of a browser until it is finished.
pub struct Sampler {
    phases: Sender<String>,
    thread: JoinHandle<Vec<Peak>>,
}

impl Sampler {
    /// Starts. None where the system does not show what processes hold.
    pub fn start(root: u32) -> Option<Sampler> {
        if !tree::is_visible() {
            return None;
        }
        let (phases, told) = mpsc::channel::<String>();
        let thread = thread::spawn(move || {
            let mut peaks = vec![Peak { phase: "start".into(), ..Peak::default() }];
            loop {
                match told.recv_timeout(INTERVAL) {
                    Ok(phase) => peaks.push(Peak { phase, ..Peak::default() }),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return peaks,
                }
                if let Some(peak) = peaks.last_mut() {
                    peak.join(&Peak::now(root));
                }
            }
        });
        Some(Sampler { phases, thread })
    }

    /// Begins another phase.
    pub fn phase(&self, name: String) {
        // It ends only when it is finished.
        let _ = self.phases.send(name);
    }

    /// Stops, and returns what was seen. None if nothing was.
    pub fn finish(self) -> Option<Peaks> {
        drop(self.phases);
        let phases = self.thread.join().ok()?;
        let mut run = Peak { phase: "all".into(), ..Peak::default() };
        phases.iter().for_each(|peak| run.join(peak));
        (run.samples > 0).then_some(Peaks { run, phases })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_a_run_is_the_most_of_each_kind() {
        let of = |samples, bytes| Peak { samples, tree_bytes: bytes, least_own_bytes: bytes, ..Peak::default() };
        let mut peak = Peak::default();
        peak.join(&Peak { renderer_bytes: Some(4), ..of(1, 10) });
        peak.join(&Peak { gpu_bytes: Some(3), ..of(2, 8) });
        assert_eq!((peak.samples, peak.tree_bytes, peak.least_own_bytes), (3, 10, 8));
        assert_eq!((peak.renderer_bytes, peak.gpu_bytes, peak.renderer_gpu_bytes), (Some(4), Some(3), None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn phases_are_told_apart() {
        let sampler = Sampler::start(std::process::id()).unwrap();
        sampler.phase("load".into());
        // The first sample of a new phase is taken at once.
        let peaks = sampler.finish().unwrap();
        let names: Vec<_> = peaks.phases.iter().map(|peak| peak.phase.as_str()).collect();
        assert_eq!(names, ["start", "load"]);
        assert!(peaks.run.tree_bytes > 1 << 20 && peaks.run.renderer_bytes.is_none());
    }
}
