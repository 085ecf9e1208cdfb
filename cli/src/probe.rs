//! `probe`: shows which backends this machine has, which one would be chosen, and why.

use crate::args::DeviceArgs;
use crate::output;
use anygpu::native::{NativeHost, block_on};
use anygpu::{EngineError, select};
use anyhow::Result;

/// Runs `probe`. If no backend works, it prints the report and then returns an error.
pub fn run(device: &DeviceArgs, json: bool) -> Result<()> {
    let selected = block_on(select(None, &device.options(), &NativeHost::default()));
    let (report, error) = match selected {
        Ok((_, report)) => (report, None),
        Err(EngineError::NoBackend(report)) => (report.clone(), Some(EngineError::NoBackend(report))),
        Err(error) => return Err(error.into()),
    };
    if json {
        output::json(&report)?;
    } else {
        output::text(&format!("{report}\n"))?;
        for rung in &report.rungs {
            for (name, value) in &rung.facts {
                output::text(&format!("    {}: {name} = {value}\n", rung.name))?;
            }
        }
    }
    error.map_or(Ok(()), |error| Err(error.into()))
}
