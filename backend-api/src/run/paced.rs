//! Steps at a device's pace: in parts, none of which holds the device, or the thread that computes, for long.

use crate::backend::{Backend, Program};
use crate::error::Error;
use crate::pace::{PART_MS, Pace};
use crate::part::{Cuts, Part, Piece};
use crate::run::{Host, Local, ready};
use crate::step::StepParams;

/// Submits one step of a program of so many rows: as [`Program::step`] does where it is short enough, else in parts, of
/// which the later wait until the device has done the earlier. Without a pace it is always the former. It waits for programs
/// that are not [ready](Backend::ready).
///
/// *Errors*: as [`Program::step`].
pub async fn step(
    program: &mut dyn Program,
    rows: usize,
    params: &StepParams,
    pace: Option<&mut Pace>,
    (backend, host): (&dyn Backend, &dyn Host),
) -> Result<(), Error> {
    step_beside(program, rows, params, pace, (backend, host), None).await
}

/// Others whose steps go between the parts of a long step.
pub trait Beside {
    /// Longest estimated time of a part, after which the others have their turn; none while there are no others.
    ///
    /// *Units*: milliseconds.
    fn part_ms(&self) -> Option<f64>;

    /// Waits until the others had their turn.
    fn turn(&self) -> Local<'_, ()>;
}

/// Submits one step as [`step`] does. If there are others, it comes in parts between which they submit steps of their own.
///
/// *Errors*: as [`Program::step`].
pub async fn step_beside(
    program: &mut dyn Program,
    rows: usize,
    params: &StepParams,
    pace: Option<&mut Pace>,
    (backend, host): (&dyn Backend, &dyn Host),
    others: Option<&dyn Beside>,
) -> Result<(), Error> {
    ready(backend, host).await?;
    let turn = async || {
        if let Some(others) = others {
            others.turn().await;
        }
    };
    let part_ms = || others.and_then(Beside::part_ms);
    let most = |pace: &Pace| pace.most(rows, part_ms().unwrap_or(PART_MS));
    let Some(pace) = pace.filter(|_| !program.pieces().is_empty()) else {
        turn().await;
        return program.step(params);
    };
    let all = Piece::total(program.pieces(), params);
    if all <= most(pace) {
        turn().await;
        return run(program, rows, params, (None, all), pace, (backend, host), part_ms().is_some()).await;
    }
    let mut cuts = Cuts::default();
    while let Some((part, work)) = cuts.next(program.pieces(), params, most(pace)) {
        turn().await;
        run(program, rows, params, (Some(part), work), pace, (backend, host), part_ms().is_some()).await?;
    }
    Ok(())
}

/// Waits until there is room, and runs a part of a step, or all of it. Beside others there is room: each part waited for a step
/// of theirs, and as they go on, the device is never idle.
async fn run(
    program: &mut dyn Program,
    rows: usize,
    params: &StepParams,
    (part, work): (Option<Part>, u64),
    pace: &mut Pace,
    (backend, host): (&dyn Backend, &dyn Host),
    is_beside: bool,
) -> Result<(), Error> {
    if is_beside {
        pace.pass();
    }
    while pace.is_full(pace.ms(rows, work)) {
        turn(Some(pace), host).await;
        if backend.idle()? {
            pace.done(pace.mark(), host.now_ms());
        }
    }
    let begun = host.now_ms();
    pace.give(rows, work, begun);
    match &part {
        Some(part) => program.part(params, part)?,
        None => program.step(params)?,
    }
    pace.returned(rows, work, host.now_ms() - begun);
    if is_beside {
        pace.pass();
    }
    Ok(())
}

/// Lets the host do other things for a turn.
pub async fn turn(pace: Option<&mut Pace>, host: &dyn Host) {
    host.turn().await;
    if let Some(pace) = pace.filter(|pace| pace.is_synchronous()) {
        pace.done(pace.mark(), host.now_ms());
    }
}
