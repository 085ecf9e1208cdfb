//! What a template may take: every operation pays, before it is done, for what it looks at and what it makes.

use super::Fault;

/// One node of a template, evaluated once.
pub(super) const STEP: usize = 32;
/// One element of a list or of a map.
pub(super) const CELL: usize = 32;

/// What is left of a rendering's work.
///
/// *Units*: bytes made or looked at; a step and an element count as several.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
}

impl Budget {
    pub fn new(units: usize) -> Budget {
        Budget { left: units }
    }

    /// Takes from what is left. To be called before the work, so that none is done that is not paid.
    pub fn pay(&mut self, units: usize) -> Result<(), Fault> {
        match self.left.checked_sub(units) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(Fault::new("it takes more memory or more steps than any template needs"))
            }
        }
    }

    /// As [`Budget::pay`], for `count` pieces of some units each.
    pub fn pay_each(&mut self, count: usize, units: usize) -> Result<(), Fault> {
        self.pay(count.saturating_mul(units))
    }
}
