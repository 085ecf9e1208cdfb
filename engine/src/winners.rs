//! Tuning results of devices, as they are stored.

use std::collections::BTreeMap;

use backend_api::{Backend, Error};
use serde::{Deserialize, Serialize};

/// Values of tunables by their names; tunables that are absent have their defaults.
pub type Values = BTreeMap<String, usize>;

/// Fastest values of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Winner {
    /// The candidate's name.
    pub rung: String,
    /// Names of the device and driver.
    pub adapter: String,
    /// Values that differ from the defaults.
    pub values: Values,
}

/// Fastest values of all devices that were tuned. They can be stored as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Winners(Vec<Winner>);

impl Winners {
    /// Adds the result of a device in place of an older one. A result without values only removes the older one: the
    /// defaults are best.
    pub fn add(&mut self, winner: Winner) {
        self.0.retain(|known| (&known.rung, &known.adapter) != (&winner.rung, &winner.adapter));
        if !winner.values.is_empty() {
            self.0.push(winner);
        }
    }

    /// Applies the known fastest values to a backend that was just opened.
    ///
    /// *Errors*: a value that this version does not have. The backend is then reset to its defaults.
    pub(crate) fn apply(&self, rung: &str, backend: &mut dyn Backend) -> Result<(), Error> {
        let adapter = &backend.info().adapter;
        let found = self.0.iter().find(|known| known.rung == rung && known.adapter == *adapter);
        let defaults = backend.tuning();
        let set = set(backend, found.map(|winner| &winner.values));
        if set.is_err() {
            // Values that cannot be set were not changed either.
            defaults.iter().for_each(|default| drop(backend.tune(default.name, default.value)));
        }
        set
    }
}

/// Sets values of tunables.
pub(crate) fn set(backend: &mut dyn Backend, values: Option<&Values>) -> Result<(), Error> {
    values.into_iter().flatten().try_for_each(|(name, value)| backend.tune(name, *value))
}
