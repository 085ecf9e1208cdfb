//! A step whose draws the device times one by one. It makes objects, so ordinary steps have no part in it.

use crate::gl::{Gl, Timer};
use backend_api::{Error, Profile};
use std::rc::Rc;

/// The times of one step, under way. If the device's clock is interrupted, as when it saves power, one step of several
/// has odd times; whoever asks takes their median.
pub(crate) struct Times {
    pub(crate) gl: Rc<Gl>,
    pub(crate) timers: Vec<Timer>,
}

impl Profile for Times {
    fn try_read(&mut self) -> Result<Option<Vec<f64>>, Error> {
        let _entered = self.gl.enter()?;
        self.gl.flush_deferred();
        self.gl.check("a profile", 0)?;
        Ok(self.timers.iter().map(Timer::ms).collect())
    }
}
