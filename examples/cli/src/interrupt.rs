//! Ctrl-C. While a text is generated the first one ends it after the token under way; any other ends the program.

use anyhow::{Context, Result};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of a program that Ctrl-C ended, by the convention of shells.
pub const EXIT_CODE: u8 = 130;

static GENERATING: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Begins to listen.
///
/// *Errors*: the system refused.
pub fn listen() -> Result<()> {
    ctrlc::set_handler(|| {
        let again = INTERRUPTED.swap(true, Ordering::Relaxed);
        if again || !GENERATING.load(Ordering::Relaxed) {
            process::exit(i32::from(EXIT_CODE));
        }
    })
    .context("cannot listen to Ctrl-C")
}

/// Says that a text is being generated, whose caller looks at [`interrupted`].
pub fn generating(yes: bool) {
    GENERATING.store(yes, Ordering::Relaxed);
}

/// Whether Ctrl-C came.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
