//! Timing race between two devices, robust against disturbed measurements: a pure function of the measured times.
//!
//! Disturbances only make a run longer. So the shortest of several runs counts, and it is trusted once a second run
//! comes near it. Measurements of a device stay valid, so the current winner is not timed anew for each challenger.

/// Most steps of a long run: as in decoding, many steps are submitted before one read.
const STEPS: u32 = 32;
/// Duration of a run that is long compared with disturbances.
///
/// *Units*: milliseconds.
const LONG_MS: f64 = 10.0;
/// Least runs before a time is trusted: on a busy machine three disturbed ones in a row are not rare.
const LEAST_RUNS: usize = 8;
/// Runs after which a time is trusted, however the runs differ.
const MOST_RUNS: usize = 16;
/// Ratio below which two times are near each other.
const NEAR: f64 = 1.25;
/// Resolution of browser clocks.
///
/// *Units*: milliseconds.
const RESOLUTION_MS: f64 = 0.1;
/// Runs in which a software device must beat the CPU at least once; otherwise it has lost.
const LOOKS: usize = 5;
/// Longest delay of a run by a late time slice.
///
/// *Units*: milliseconds.
const SLICE_MS: f64 = 100.0;
/// Factor by which a software device must be faster than the CPU, since it takes the processor from everything else.
const SOFTWARE_GAIN: f64 = 2.0;

/// Kind of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Device {
    /// The CPU backend.
    Cpu,
    /// A GPU that is emulated in software on the CPU.
    Software,
    /// A GPU.
    Gpu,
}

/// The two shortest of several times.
#[derive(Debug, Clone, Copy)]
struct Least {
    runs: usize,
    first: f64,
    second: f64,
}

impl Least {
    const NONE: Least = Least { runs: 0, first: f64::INFINITY, second: f64::INFINITY };

    fn add(&mut self, ms: f64) {
        self.runs += 1;
        self.second = self.second.min(ms.max(self.first));
        self.first = self.first.min(ms);
    }

    fn is_believed(&self) -> bool {
        let repeated = self.second <= (self.first * NEAR).max(self.first + RESOLUTION_MS);
        self.runs >= MOST_RUNS || (self.runs >= LEAST_RUNS && repeated)
    }
}

/// Measurements of a device.
#[derive(Debug, Clone)]
pub(crate) struct Times {
    device: Device,
    warm: bool,
    /// Runs of one step, and runs of several steps.
    one: Least,
    many: Least,
    /// Steps of the long runs, once the time of one step is known; 1 if a single step is long enough.
    steps: Option<u32>,
}

impl Times {
    pub fn new(device: Device) -> Times {
        Times { device, warm: false, one: Least::NONE, many: Least::NONE, steps: None }
    }

    /// Adds the time of a run of [`Self::next`] or [`Self::again`], with its read.
    pub fn add(&mut self, steps: u32, ms: f64) {
        if !self.warm {
            // The first run includes work that the driver has deferred until then.
            self.warm = true;
            return;
        }
        match steps {
            1 => self.one.add(ms),
            _ => self.many.add(ms),
        }
        if self.steps.is_none() && self.one.is_believed() {
            self.steps = Some(STEPS.min((LONG_MS / self.one.first.max(f64::MIN_POSITIVE)) as u32) + 1);
        }
    }

    /// Returns the steps of the next run that is needed before the device's time is trusted; nothing if it is trusted.
    pub fn next(&self) -> Option<u32> {
        let (one, many) = (self.one.first, self.many.first);
        match self.steps {
            None => Some(1),
            Some(1) => None,
            Some(steps) if !self.many.is_believed() => Some(steps),
            // A plausible long run takes longer than one step, and at most as long as that many single steps.
            Some(_) if one > many && self.one.runs < MOST_RUNS => Some(1),
            Some(steps) if many > NEAR * f64::from(steps) * one && self.many.runs < MOST_RUNS => Some(steps),
            Some(_) => None,
        }
    }

    /// Returns the steps of one more run, for two devices that are near each other; nothing after enough runs.
    fn again(&self) -> Option<u32> {
        let steps = self.steps.unwrap_or(1);
        let of_one = steps == 1 || (self.device == Device::Gpu && self.one.runs < self.many.runs);
        let (steps, runs) = if of_one { (1, self.one.runs) } else { (steps, self.many.runs) };
        (runs < MOST_RUNS).then_some(steps)
    }

    fn runs(&self) -> usize {
        self.one.runs + self.many.runs
    }

    /// Returns the best estimate of the time of one step.
    ///
    /// *Units*: milliseconds.
    pub fn step_ms(&self) -> f64 {
        let steps = f64::from(self.steps.unwrap_or(1));
        if self.many.runs == 0 {
            return self.one.first;
        }
        let mean = self.many.first / steps;
        match self.device {
            // The overhead of a read is subtracted: on a fast GPU in a browser it costs more than the step. Clocks are
            // coarse, so the difference may come out as 0.
            Device::Gpu => ((self.many.first - self.one.first) / (steps - 1.0)).max(mean / 100.0),
            Device::Cpu | Device::Software => mean.min(self.one.first),
        }
    }

    /// Returns whether the time of a step is unknown, or may be mostly the overhead of a read.
    pub fn is_rough(&self) -> bool {
        self.many.runs == 0 && (self.one.runs == 0 || self.one.first < LONG_MS)
    }
}

/// Side of a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The fastest device so far.
    Holder,
    /// The device that may be faster.
    Challenger,
}

/// Next step of a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A run of so many steps.
    Run(Side, u32),
    /// The end: the winner.
    Won(Side),
}

/// Returns the next measurement that is needed, or the winner.
pub(crate) fn next(holder: &Times, challenger: &Times) -> Next {
    let software = (holder.device, challenger.device) == (Device::Cpu, Device::Software);
    // A wrong decision here costs little, since software is never much faster; long trials would cost more.
    let slower_by = challenger.step_ms() - holder.step_ms();
    if software && !challenger.is_rough() && (slower_by > SLICE_MS || (slower_by > 0.0 && challenger.runs() >= LOOKS)) {
        return Next::Won(Side::Holder);
    }
    let sides = [(Side::Holder, holder), (Side::Challenger, challenger)];
    // The sides alternate, so that a slowdown of the machine affects both.
    let in_turn = |steps: &dyn Fn(&Times) -> Option<u32>| {
        let open = sides.iter().filter_map(|(side, times)| Some((times.runs(), *side, steps(times)?)));
        open.min_by_key(|(runs, ..)| *runs).map(|(_, side, steps)| Next::Run(side, steps))
    };
    if let Some(run) = in_turn(&Times::next) {
        return run;
    }
    let gain = if software { SOFTWARE_GAIN } else { 1.0 };
    let ratio = challenger.step_ms().max(f64::MIN_POSITIVE) * gain / holder.step_ms().max(f64::MIN_POSITIVE);
    if ratio < NEAR
        && ratio > 1.0 / NEAR
        && let Some(run) = in_turn(&Times::again)
    {
        return run;
    }
    Next::Won(if ratio < 1.0 { Side::Challenger } else { Side::Holder })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulated device, whose runs are often disturbed.
    struct Simulated {
        device: Device,
        read_ms: f64,
        step_ms: f64,
    }

    const fn device(device: Device, read_ms: f64, step_ms: f64) -> Simulated {
        Simulated { device, read_ms, step_ms }
    }

    struct Random(u64);

    impl Random {
        /// Returns a number in [0, 1).
        fn unit(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as f64 / f64::from(1u32 << 31)
        }
    }

    impl Simulated {
        /// Simulates a run with up to 5% of jitter. In 3 of 10 runs another program takes the processor for up to 100
        /// ms.
        fn run(&self, steps: u32, random: &mut Random) -> f64 {
            let ms = (self.read_ms + f64::from(steps) * self.step_ms) * (1.0 + 0.05 * random.unit());
            if random.unit() < 0.3 { ms + 4.0 + 96.0 * random.unit() } else { ms }
        }
    }

    /// Simulates a race; returns the winner, and how long it took.
    fn race(holder: &Simulated, challenger: &Simulated, random: &mut Random) -> (Side, f64) {
        let (mut a, mut b) = (Times::new(holder.device), Times::new(challenger.device));
        let mut spent = 0.0;
        for _ in 0..8 * MOST_RUNS {
            let (times, simulated, steps) = match next(&a, &b) {
                Next::Won(side) => return (side, spent),
                Next::Run(Side::Holder, steps) => (&mut a, holder, steps),
                Next::Run(Side::Challenger, steps) => (&mut b, challenger, steps),
            };
            let ms = simulated.run(steps, random);
            spent += ms;
            times.add(steps, ms);
        }
        panic!("a race without an end: {a:?} {b:?}")
    }

    #[test]
    fn the_right_one_wins_100_times_of_100_whatever_comes_late() {
        use Device::{Cpu, Gpu, Software};
        let cpu = device(Cpu, 0.0, 0.4);
        let slow_cpu = device(Cpu, 0.0, 9.0);
        let cases = [
            ("software is slower", &cpu, device(Software, 0.3, 3.6), Side::Holder),
            ("software is slower by far", &cpu, device(Software, 1.0, 37.0), Side::Holder),
            ("software is as fast", &cpu, device(Software, 0.1, 0.4), Side::Holder),
            ("software is faster, but not twice as fast", &cpu, device(Software, 0.1, 0.26), Side::Holder),
            ("software is three times as fast", &slow_cpu, device(Software, 0.3, 3.0), Side::Challenger),
            ("a GPU is faster", &cpu, device(Gpu, 0.2, 0.05), Side::Challenger),
            ("a GPU is faster, and its reads are slow", &cpu, device(Gpu, 4.0, 0.05), Side::Challenger),
            ("a GPU is as slow as software", &cpu, device(Gpu, 0.5, 3.6), Side::Holder),
            ("a GPU is slow, the CPU slower", &device(Cpu, 0.0, 60.0), device(Gpu, 1.0, 40.0), Side::Challenger),
            ("the other GPU is a fifth slower", &device(Gpu, 0.5, 1.0), device(Gpu, 0.5, 1.2), Side::Holder),
            ("the other GPU is a fifth faster", &device(Gpu, 0.5, 1.2), device(Gpu, 0.5, 1.0), Side::Challenger),
        ];
        for (name, holder, challenger, right) in cases {
            let mut random = Random(1);
            let wrong = (0..100).filter(|_| race(holder, &challenger, &mut random).0 != right).count();
            assert_eq!(wrong, 0, "{name}: {wrong} of 100 races went wrong");
        }
    }

    #[test]
    fn software_that_is_slow_is_sent_off_after_a_look() {
        let (cpu, slow) = (device(Device::Cpu, 0.0, 0.4), device(Device::Software, 1.0, 400.0));
        let (mut a, mut b) = (Times::new(Device::Cpu), Times::new(Device::Software));
        let (mut random, mut looks) = (Random(7), 0);
        while let Next::Run(side, steps) = next(&a, &b) {
            match side {
                Side::Holder => a.add(steps, cpu.run(steps, &mut random)),
                Side::Challenger => {
                    looks += 1;
                    b.add(steps, slow.run(steps, &mut random));
                }
            }
        }
        assert_eq!(looks, 2, "one that warms it up, and one");
    }

    #[test]
    fn a_race_between_near_ones_is_run_longer() {
        let run = |step_ms| {
            let mut random = Random(3);
            race(&device(Device::Gpu, 0.0, 1.0), &device(Device::Gpu, 0.0, step_ms), &mut random).1
        };
        assert!(run(1.1) > 1.5 * run(3.0), "{} ms and {} ms", run(1.1), run(3.0));
    }

    #[test]
    fn a_clock_that_stands_still_decides_nothing_and_ends() {
        let (a, b) = (device(Device::Gpu, 0.0, 0.0), device(Device::Gpu, 0.0, 0.0));
        let mut times = [Times::new(a.device), Times::new(b.device)];
        while let Next::Run(side, steps) = next(&times[0], &times[1]) {
            times[side as usize].add(steps, 0.0);
        }
        assert_eq!(next(&times[0], &times[1]), Next::Won(Side::Holder));
    }
}
