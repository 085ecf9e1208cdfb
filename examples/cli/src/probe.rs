use crate::args::DeviceArgs;
use anyhow::Result;
pub fn run(_d: &DeviceArgs, _json: bool) -> Result<()> {
    Ok(())
}
