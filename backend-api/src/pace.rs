//! The pace of a device: how much it does in a millisecond, learnt from steps that ran, and what it was given to do.
//!
//! Time enters here as numbers that the caller gives, and leaves as how much a part of a step may be. Which programs a
//! text takes does not depend on it.

use std::cell::Cell;
use std::rc::Rc;

/// Longest estimated time of a part of a step. It is half of the 100 ms after which people notice, as estimates may
/// be off by two.
///
/// *Units*: milliseconds.
pub const PART_MS: f64 = 50.0;
/// Longest estimated time of the work that a device holds at once: whatever the page draws waits for all of it.
///
/// *Units*: milliseconds.
pub const HELD_MS: f64 = 100.0;
/// Times below this say little: clocks are coarse, and whoever waits looks only now and then.
///
/// *Units*: milliseconds.
const LEAST_MS: f64 = 10.0;
/// One measurement changes a rate by no more than this factor.
const CHANGE: f64 = 2.0;
/// A rate does not fall below this part of the best one: in a hidden page everything seems slow, as turns of the event
/// loop come seldom, and ever smaller parts would make it slower.
const WORST: f64 = 0.125;

/// How much a device does of one kind of work, and the most that was measured.
///
/// *Units*: what a [`Cost`](crate::Cost) counts, a millisecond.
#[derive(Debug, Clone, Copy)]
struct Rate {
    now: f64,
    best: f64,
}

/// A device's rate, which all texts on it learn together, and what it is doing for one of them.
#[derive(Debug)]
pub struct Pace {
    /// Rates of the [kinds](kind) of programs.
    rates: Rc<Cell<[Rate; KINDS]>>,
    fixed: bool,
    synchronous: bool,
    /// The estimated time of what was given to the device so far, and of what is known to be done.
    given_ms: f64,
    done_ms: f64,
    /// Whether programs of each kind are under way.
    under_way: [bool; KINDS],
    /// Since when the device does what is under way.
    since_ms: f64,
}

/// All that was given to a device until some moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mark(f64);

impl Pace {
    /// Starts from an estimated rate. A synchronous device has finished a step when the call returns.
    pub fn new(rate: f64, synchronous: bool) -> Pace {
        Pace {
            rates: Rc::new(Cell::new([Rate { now: rate.max(1.0), best: 0.0 }; KINDS])),
            fixed: false,
            synchronous,
            given_ms: 0.0,
            done_ms: 0.0,
            under_way: [false; KINDS],
            since_ms: 0.0,
        }
    }

    /// A pace for another text on the same device: what is learnt with either holds for both.
    pub fn another(&self) -> Pace {
        Pace { rates: self.rates.clone(), fixed: self.fixed, ..Pace::new(1.0, self.synchronous) }
    }

    /// Keeps to a given rate, whatever is measured: for tests.
    pub fn fixed(rate: f64, synchronous: bool) -> Pace {
        Pace { fixed: true, ..Pace::new(rate, synchronous) }
    }

    /// The estimated time of so much work in programs of so many rows.
    ///
    /// *Units*: milliseconds.
    pub fn ms(&self, rows: usize, work: u64) -> f64 {
        work as f64 / self.rate(rows)
    }

    /// The most work of a part of a step that is to take no longer than so many milliseconds.
    pub fn most(&self, rows: usize, ms: f64) -> u64 {
        ((ms * self.rate(rows)) as u64).max(1)
    }

    fn rate(&self, rows: usize) -> f64 {
        known(&self.rates.get(), kind(rows))
    }

    /// Whether what comes next has to wait until the device, or on a synchronous one the host, has had a turn.
    pub fn is_full(&self, next_ms: f64) -> bool {
        let (held, most) = (self.given_ms - self.done_ms, if self.synchronous { PART_MS } else { HELD_MS });
        held > 0.0 && held + next_ms > most
    }

    /// Takes note of work that the device is given now.
    pub fn give(&mut self, rows: usize, work: u64, now_ms: f64) {
        if self.given_ms <= self.done_ms {
            self.since_ms = now_ms;
        }
        self.given_ms += self.ms(rows, work);
        self.under_way[kind(rows)] = true;
    }

    /// All that was given so far.
    pub fn mark(&self) -> Mark {
        Mark(self.given_ms)
    }

    /// Learns that everything until a mark is done, or that the host of a synchronous device has had a turn.
    pub fn done(&mut self, Mark(until_ms): Mark, now_ms: f64) {
        let estimate = until_ms - self.done_ms;
        if estimate <= 0.0 {
            return;
        }
        if !self.synchronous {
            self.learn(self.under_way, estimate, now_ms - self.since_ms);
        }
        (self.done_ms, self.since_ms) = (until_ms, now_ms);
        if self.given_ms <= self.done_ms {
            self.under_way = [false; KINDS];
        }
    }

    /// Takes all that was given for done, and learns nothing of how long it took: the device had other work, too.
    pub fn pass(&mut self) {
        self.done_ms = self.given_ms;
        self.under_way = [false; KINDS];
    }

    /// Learns what the call took that gave work to the device: on a synchronous one, the time of the work.
    pub fn returned(&mut self, rows: usize, work: u64, took_ms: f64) {
        if self.synchronous {
            let only = std::array::from_fn(|at| at == kind(rows));
            self.learn(only, self.ms(rows, work), took_ms);
        }
    }

    /// Corrects the rates of these kinds by a measurement.
    fn learn(&mut self, kinds: [bool; KINDS], estimate: f64, took: f64) {
        if self.fixed || estimate.max(took) < LEAST_MS {
            return;
        }
        let ratio = (estimate / took.max(f64::MIN_POSITIVE)).min(CHANGE);
        let before = self.rates.get();
        let after = std::array::from_fn(|kind| {
            let (rate, assumed) = (before[kind], known(&before, kind));
            if !kinds[kind] {
                return rate;
            }
            let best = rate.best.max(assumed * ratio);
            Rate { now: (assumed * ratio.max(1.0 / CHANGE)).max(best * WORST).max(1.0), best }
        });
        self.rates.set(after);
    }

    /// Whether steps are done when their call returns.
    pub fn is_synchronous(&self) -> bool {
        self.synchronous
    }
}

/// Kinds of programs whose rates differ: those of one row and of a few are bound by memory, of which the latter do several
/// times as much with each weight, and those of many by arithmetic.
const KINDS: usize = 3;

/// The rate of a kind, or while it is not known, that of the next lower kind that is: it is no higher.
fn known(rates: &[Rate; KINDS], kind: usize) -> f64 {
    rates[..=kind].iter().rev().find(|rate| rate.best > 0.0).unwrap_or(&rates[0]).now
}

fn kind(rows: usize) -> usize {
    match rows {
        0 | 1 => 0,
        2..=32 => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that does work one after the other, and of which somebody hears `late_ms` after it is done.
    struct Simulated {
        rate: f64,
        late_ms: f64,
    }

    /// Gives so much work to a device, in parts, and tells how long each took the device.
    fn run(pace: &mut Pace, device: &Simulated, mut work: u64, now: &mut f64) -> Vec<f64> {
        let mut parts = Vec::new();
        let mut busy_until = *now;
        while work > 0 {
            let part = work.min(pace.most(128, PART_MS));
            if pace.is_full(pace.ms(128, part)) {
                *now = busy_until.max(*now) + device.late_ms;
                pace.done(pace.mark(), *now);
            }
            pace.give(128, part, *now);
            let ms = part as f64 / device.rate;
            busy_until = busy_until.max(*now) + ms;
            parts.push(ms);
            work -= part;
        }
        *now = busy_until + device.late_ms;
        pace.done(pace.mark(), *now);
        parts
    }

    #[test]
    fn a_slow_device_gets_short_parts_and_a_fast_one_the_whole() {
        for (rate, late_ms) in [(1e3, 0.0), (1e3, 4.0), (1e5, 4.0)] {
            let device = Simulated { rate, late_ms };
            let mut pace = Pace::new(rate, false);
            let parts = run(&mut pace, &device, (rate * 2000.0) as u64, &mut 0.0);
            assert!(parts.iter().all(|ms| *ms <= PART_MS * 1.05), "{parts:?}");
            assert!((40..=60).contains(&parts.len()), "{} parts", parts.len());
        }
        let mut pace = Pace::new(1e6, false);
        assert_eq!(run(&mut pace, &Simulated { rate: 1e6, late_ms: 4.0 }, 40_000_000, &mut 0.0).len(), 1);
    }

    #[test]
    fn a_wrong_first_estimate_is_corrected_within_a_few_parts() {
        for wrong in [0.03, 0.2, 5.0, 30.0] {
            let device = Simulated { rate: 1e4, late_ms: 2.0 };
            let mut pace = Pace::new(1e4 * wrong, false);
            let parts = run(&mut pace, &device, 200_000_000, &mut 0.0);
            let late: Vec<f64> = parts.into_iter().skip(12).collect();
            let near = |ms: &&f64| (30.0..=55.0).contains(*ms);
            assert!(late.iter().filter(near).count() + 2 >= late.len(), "{wrong}: {late:?}");
        }
    }

    #[test]
    fn what_one_text_learns_holds_for_all() {
        let (mut one, now) = (Pace::new(1e3, false), &mut 0.0);
        let mut other = one.another();
        run(&mut one, &Simulated { rate: 1e6, late_ms: 0.0 }, 100_000_000, now);
        assert!((9e5..1.1e6).contains(&(other.most(128, 1.0) as f64)), "{}", other.most(128, 1.0));
        // But each waits for its own work.
        one.give(128, 200_000_000, *now);
        assert!(one.is_full(1.0) && !other.is_full(1.0));
        other.pass();
        assert!(one.is_full(1.0));
        // A kind that is not known is taken for as fast as a lower one.
        let pace = Pace::new(1e3, true);
        let mut other = pace.another();
        (0..4).for_each(|_| other.returned(8, 1_000_000, 100.0));
        assert_eq!((pace.most(1, 1.0), pace.most(8, 1.0), pace.most(128, 1.0)), (1_000, 10_000, 10_000));
        other.returned(128, 1_000_000, 50.0);
        assert_eq!((pace.most(8, 1.0), pace.most(128, 1.0)), (10_000, 20_000));
        assert_eq!(Pace::fixed(7.0, true).another().most(1, 10.0), 70);
    }

    #[test]
    fn a_page_that_is_hidden_does_not_make_parts_smaller_without_end() {
        let (mut pace, mut now) = (Pace::new(1e4, false), 0.0);
        run(&mut pace, &Simulated { rate: 1e4, late_ms: 0.0 }, 10_000_000, &mut now);
        let parts = run(&mut pace, &Simulated { rate: 1e4, late_ms: 1000.0 }, 10_000_000, &mut now);
        assert!(parts.iter().all(|ms| *ms >= PART_MS / 10.0), "{parts:?}");
        let parts = run(&mut pace, &Simulated { rate: 1e4, late_ms: 0.0 }, 20_000_000, &mut now);
        assert!(parts.iter().filter(|ms| **ms > 45.0).count() > 30, "{parts:?}");
    }

    #[test]
    fn what_is_forced_stays_and_kinds_of_programs_are_apart() {
        let mut pace = Pace::fixed(1e3, false);
        pace.give(128, 1_000_000, 0.0);
        pace.done(pace.mark(), 1.0);
        assert_eq!(pace.most(128, PART_MS), 50_000);
        let mut pace = Pace::new(1e3, false);
        pace.give(128, 1_000_000, 0.0);
        pace.done(pace.mark(), 1.0);
        assert_eq!((pace.most(1, PART_MS), pace.most(128, PART_MS)), (50_000, 100_000));
    }

    #[test]
    fn a_synchronous_device_is_full_until_the_host_has_had_a_turn() {
        let mut pace = Pace::new(1e3, true);
        pace.give(128, 40_000, 0.0);
        pace.returned(128, 40_000, 20.0);
        assert_eq!(pace.most(128, PART_MS), 100_000, "twice as fast as it seemed");
        assert!(pace.is_full(20.0) && !pace.is_full(5.0));
        pace.done(pace.mark(), 100.0);
        assert_eq!(pace.most(128, PART_MS), 100_000, "what the host did meanwhile does not count");
        assert!(!pace.is_full(500.0), "nothing is under way, so it may begin");
    }
}
