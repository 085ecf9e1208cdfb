//! Showing that something is being done.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// Does something that may take a while, with a line that says what and for how long.
pub fn during<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let bar = ProgressBar::new_spinner().with_message(what.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    let result = work();
    bar.finish_and_clear();
    result
}
