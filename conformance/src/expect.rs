//! Known failures, each with a reason. An expected failure that passes fails the run.

use serde::Deserialize;

/// The file of known failures.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectations {
    /// Its entries.
    #[serde(default)]
    pub expect: Vec<Expectation>,
}

/// One known failure.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The backend's name in the suite.
    pub backend: String,
    /// Part of the adapter's name; left out = any.
    #[serde(default)]
    pub adapter: String,
    /// The operator.
    pub op: String,
    /// The case; left out = all of the operator's.
    pub case: Option<String>,
    /// Why it fails, and what is being done.
    pub reason: String,
}

impl Expectations {
    /// The reason why a case is expected to fail.
    pub fn reason(&self, backend: &str, adapter: &str, op: &str, case: &str) -> Option<&str> {
        let fits = |e: &&Expectation| {
            e.backend == backend
                && adapter.contains(&e.adapter)
                && e.op == op
                && e.case.as_deref().is_none_or(|name| name == case)
        };
        self.expect.iter().find(fits).map(|e| e.reason.as_str())
    }
}
