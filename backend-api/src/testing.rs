//! For tests of backends: broken kernels, for mutation checks.

/// Replaces a text in every shader that a backend assembles, so that a check can see whether tests notice a broken
/// kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShaderPatch {
    /// Text that is replaced, everywhere.
    pub find: &'static str,
    /// By what.
    pub replace: &'static str,
}

impl ShaderPatch {
    /// The shader with the replacement.
    pub fn apply(&self, source: &str) -> String {
        source.replace(self.find, self.replace)
    }
}
