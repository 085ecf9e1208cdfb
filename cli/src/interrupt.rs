//! Handling of Ctrl-C. While a text is generated, the first Ctrl-C ends the text after the current token; any other
//! ends the program. In a conversation in a terminal it only ends the answer, unless the answer does not end.

use anyhow::{Context, Result};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The exit code after Ctrl-C, by the convention of shells.
pub const EXIT_CODE: u8 = 130;

/// Time after the first Ctrl-C. If the answer has not ended by then, another Ctrl-C ends the conversation.
const PATIENCE: Duration = Duration::from_secs(2);

static GENERATING: AtomicBool = AtomicBool::new(false);
static CONVERSING: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static FIRST: Mutex<Option<Instant>> = Mutex::new(None);

/// Installs the handler.
///
/// *Errors*: the system refuses.
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

/// Sets whether a text is being generated, whose caller checks [`interrupted`].
pub fn generating(yes: bool) {
    GENERATING.store(yes, Ordering::Relaxed);
}

/// Records that a conversation in a terminal has begun. Ctrl-C no longer ends the program at once.
pub fn conversing() {
    CONVERSING.store(true, Ordering::Relaxed);
}

/// Resets the state after a Ctrl-C that was handled.
pub fn forget() {
    *FIRST.lock().unwrap_or_else(PoisonError::into_inner) = None;
    INTERRUPTED.store(false, Ordering::Relaxed);
}

/// Returns whether Ctrl-C was pressed.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
