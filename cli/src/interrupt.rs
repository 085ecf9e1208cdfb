//! Ctrl-C. While a text is generated the first one ends it after the token under way; any other ends the program. In a
//! conversation in a terminal it ends an answer and nothing else, unless that does not help.

use anyhow::{Context, Result};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The exit code of a program that Ctrl-C ended, by the convention of shells.
pub const EXIT_CODE: u8 = 130;

/// After the first Ctrl-C of an answer that goes on for longer, another one ends a conversation.
const PATIENCE: Duration = Duration::from_secs(2);

static GENERATING: AtomicBool = AtomicBool::new(false);
static CONVERSING: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static FIRST: Mutex<Option<Instant>> = Mutex::new(None);

/// Begins to listen.
///
/// *Errors*: the system refused.
pub fn listen() -> Result<()> {
    ctrlc::set_handler(|| {
        let again = INTERRUPTED.swap(true, Ordering::Relaxed);
        let first = *FIRST.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
        let ends = match CONVERSING.load(Ordering::Relaxed) {
            true => again && first.elapsed() > PATIENCE,
            false => again || !GENERATING.load(Ordering::Relaxed),
        };
        if ends {
            process::exit(i32::from(EXIT_CODE));
        }
    })
    .context("cannot listen to Ctrl-C")
}

/// Says that a text is being generated, whose caller looks at [`interrupted`].
pub fn generating(yes: bool) {
    GENERATING.store(yes, Ordering::Relaxed);
}

/// Says that a conversation in a terminal has begun, which no Ctrl-C is to end.
pub fn conversing() {
    CONVERSING.store(true, Ordering::Relaxed);
}

/// Forgets a Ctrl-C that has ended what it was to end.
pub fn forget() {
    *FIRST.lock().unwrap_or_else(PoisonError::into_inner) = None;
    INTERRUPTED.store(false, Ordering::Relaxed);
}

/// Whether Ctrl-C came.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
