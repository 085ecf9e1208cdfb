use crate::args::DeviceArgs;
use crate::host::Native;
use anyhow::{Result, bail};
use backend_api::Backend;
use model::Recipe;
use std::rc::Rc;
pub fn select(_d: &DeviceArgs, _r: Option<&Recipe>, _h: &Native) -> Result<(Rc<dyn Backend>, String)> {
    bail!("none")
}
