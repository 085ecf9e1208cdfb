//! Memory of a browser, seen from outside.

use crate::memory::Peaks;

/// Growth between earlier and later rests that is allowed. In bytes: an engine of each cycle that stays takes more
/// after a few dozen.
const GROWTH: u64 = 64 << 20;

/// Shows what a browser held.
pub fn tell(peaks: Option<&Peaks>) {
    let Some(Peaks { run, phases }) = peaks else {
        println!("memory: this system does not show what processes hold; Linux does");
        return;
    };
    for peak in phases.iter().chain([run]) {
        let part = |name, bytes: Option<u64>| bytes.map_or(String::new(), |bytes| format!(", {name} {}", mib(bytes)));
        println!(
            "memory, {:<10} {} in all{}{}{}",
            peak.phase,
            mib(peak.tree_bytes),
            part("renderers and GPU process", peak.renderer_gpu_bytes),
            part("renderers", peak.renderer_bytes),
            part("GPU process", peak.gpu_bytes)
        );
    }
}

/// Returns the least memory of the browser's own in each phase that is called a rest, in order. In bytes.
pub fn rests(peaks: &Peaks) -> Vec<u64> {
    peaks.phases.iter().filter(|peak| peak.phase == "rest").map(|peak| peak.least_own_bytes).collect()
}

/// Returns the fault, if the rests grow, and prints them. A browser gives memory back when it likes, so that single
/// rests differ: the median of the first half is compared with that of the second half.
pub fn growth(rests: &[u64]) -> Option<String> {
    println!("memory at rests: {}", rests.iter().copied().map(mib).collect::<Vec<_>>().join(", "));
    let (first, second) = rests.split_at(rests.len() / 2);
    let sorted = |part: &[u64]| {
        let mut part = part.to_vec();
        part.sort_unstable();
        part
    };
    // Of an even number there are two in the middle: those that are closer count.
    let before = *sorted(first).get(first.len() / 2)?;
    let after = *sorted(second).get(second.len().saturating_sub(1) / 2)?;
    let more = after.saturating_sub(before);
    (more > GROWTH).then(|| format!("the browser holds {} more at the later rests than at the earlier ones", mib(more)))
}

fn mib(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Peak;

    #[test]
    fn rests_that_grow_are_an_error() {
        let peak =
            |phase: &str, least: u64| Peak { phase: phase.into(), least_own_bytes: least << 20, ..Peak::default() };
        let phases = vec![peak("start", 1), peak("rest", 200), peak("cycles", 900), peak("rest", 230)];
        let peaks = Peaks { run: peak("all", 1), phases };
        assert_eq!(rests(&peaks), [200 << 20, 230 << 20]);
        assert_eq!(growth(&rests(&peaks)), None);
        let judged = |mebibytes: [u64; 8]| growth(&mebibytes.map(|n| n << 20));
        // A thousand cycles; and the same with 320 KiB a cycle that stay.
        let seen = [430, 557, 560, 561, 566, 547, 428, 535];
        assert_eq!(judged(seen), None);
        assert_eq!(judged([535, 428, 547, 566, 561, 560, 557, 430]), None);
        let mut leaking = seen;
        leaking.iter_mut().zip(1..).for_each(|(rest, eighths)| *rest += eighths * 40);
        assert!(judged(leaking).unwrap().contains("MiB more"));
        assert_eq!(growth(&[]), None);
    }
}
