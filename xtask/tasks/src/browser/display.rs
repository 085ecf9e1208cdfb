//! A display that nobody looks at.

use crate::process::Group;
use anyhow::{Context, Result, bail};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// It starts within a second, but not on a machine under load.
const LIMIT: Duration = Duration::from_secs(30);

/// A running Xvfb.
pub struct Display {
    /// Its name, for the variable `DISPLAY`.
    pub name: String,
    _server: Group,
}

impl Display {
    /// Starts one on the first free number, and waits until it is ready.
    pub fn start() -> Result<Display> {
        let (send, numbers) = mpsc::channel();
        // It prints the number when it accepts connections.
        let mut command = Command::new("Xvfb");
        command.args(["-displayfd", "1", "-screen", "0", "1280x1024x24", "-nolisten", "tcp"]);
        let server = Group::start(&mut command, move |line| {
            if let Ok(number) = line.trim().parse::<u32>() {
                // If nobody waits any more, the number is not needed.
                let _ = send.send(number);
            }
        })
        .context("cannot start Xvfb; apt-get install xvfb")?;
        match numbers.recv_timeout(LIMIT) {
            Ok(number) => Ok(Display { name: format!(":{number}"), _server: server }),
            Err(_) => bail!("Xvfb is not ready after {} s:\n{}", LIMIT.as_secs(), server.tail(20)),
        }
    }
}
