//! Work budget of a rendering. Every operation pays in advance for the data that it reads and makes.

use super::Fault;

/// Cost of evaluating a node of the template once.
pub(super) const STEP: usize = 32;
/// Cost of an element of a list or map.
pub(super) const CELL: usize = 32;

/// Remaining work of a rendering.
///
/// *Units*: bytes that are read or made; a step and an element cost several.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
}

impl Budget {
    pub fn new(units: usize) -> Budget {
        Budget { left: units }
    }

    /// Deducts units. Operations call it before their work, so that no unpaid work is done.
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

    /// Deducts `count` times so many units; see [`Budget::pay`].
    pub fn pay_each(&mut self, count: usize, units: usize) -> Result<(), Fault> {
        self.pay(count.saturating_mul(units))
    }
}
