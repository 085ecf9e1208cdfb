//! Selection under disturbed timing: with a clock that jumps, and under real load.
//!
//! The right choices are known for machines whose GPUs are all software: the CPU is many times as fast as they are.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use anygpu::native::{NativeHost, block_on};
use anygpu::{Report, SelectOptions, select};
use model::Host;

/// A clock that has jumped in one reading of six, as if another program had used the processor.
struct Late {
    clock: NativeHost,
    behind: Cell<f64>,
    random: RefCell<u64>,
}

impl Host for Late {
    fn wake_later(&self, waker: &Waker) {
        self.clock.wake_later(waker);
    }

    fn now_ms(&self) -> f64 {
        let mut random = self.random.borrow_mut();
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (odds, size) = ((*random >> 33) % 6, (*random >> 40) % 100);
        if odds == 0 {
            self.behind.set(self.behind.get() + 20.0 + size as f64);
        }
        self.clock.now_ms() + self.behind.get()
    }
}

/// Returns whether a GPU of this machine is hardware; the right choice is then not known.
fn has_hardware(report: &Report) -> bool {
    let opened = report.rungs.iter().filter(|rung| rung.adapter.is_some() && rung.name != "cpu");
    let found = opened.filter(|rung| !rung.software).count() > 0;
    if found {
        println!("SKIPPED selection: this machine has a GPU that is not software");
    }
    found
}

fn the_cpu_is_chosen(host: &dyn Host, what: &str) -> bool {
    let (_, report) = block_on(select(None, &SelectOptions::default(), host)).unwrap();
    if has_hardware(&report) {
        return false;
    }
    assert_eq!(report.chosen, Some("cpu"), "{what}:\n{report}");
    true
}

#[test]
fn late_time_slices_do_not_decide() {
    for seed in 0..10 {
        let host = Late { clock: NativeHost::default(), behind: Cell::new(0.0), random: RefCell::new(seed) };
        if !the_cpu_is_chosen(&host, &format!("seed {seed}")) {
            return;
        }
    }
}

#[test]
fn load_does_not_decide() {
    let done = AtomicBool::new(false);
    let threads = 2 * std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let run = |at| the_cpu_is_chosen(&NativeHost::default(), &format!("{threads} threads spin, run {at}"));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (0..5).all(run)));
        done.store(true, Ordering::Relaxed);
        outcome.map(drop).unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}
