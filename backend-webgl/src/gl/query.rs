//! Timers: how long the device takes for what is drawn between their ends.

use super::Gl;
use backend_api::Error;
use glow::HasContext;
use std::rc::Rc;

/// A timer.
pub(crate) struct Timer {
    gl: Rc<Gl>,
    raw: glow::Query,
}

impl Gl {
    /// Begins to time what is drawn, until [`Timer::end`]; one at a time.
    ///
    /// *Errors*: the context is lost.
    pub(crate) fn timer(self: &Rc<Self>) -> Result<Timer, Error> {
        // SAFETY: the caller has seen that the context has timers.
        let raw = unsafe {
            let raw = self.made("timer", self.raw.create_query())?;
            self.raw.begin_query(glow::TIME_ELAPSED, raw);
            raw
        };
        self.count(|s| s.objects += 1);
        Ok(Timer { gl: self.clone(), raw })
    }
}

impl Timer {
    /// Ends what is timed.
    pub(crate) fn end(&self) {
        // SAFETY: it is the one that runs.
        unsafe { self.gl.raw.end_query(glow::TIME_ELAPSED) }
    }

    /// Returns the device's time, once it is known.
    ///
    /// *Units*: milliseconds.
    pub(crate) fn ms(&self) -> Option<f64> {
        let raw = &self.gl.raw;
        // SAFETY: queries of an object of this context.
        unsafe {
            let known = raw.get_query_parameter_u32(self.raw, glow::QUERY_RESULT_AVAILABLE) != 0;
            known.then(|| f64::from(raw.get_query_parameter_u32(self.raw, glow::QUERY_RESULT)) / 1e6)
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Ok(_entered) = self.gl.enter() {
            // SAFETY: nobody else has it.
            unsafe { self.gl.raw.delete_query(self.raw) }
        }
    }
}
