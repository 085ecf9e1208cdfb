//! The built-in model.

/// The file of the story model `gab` (Apache-2.0).
pub const GAB: &[u8] = include_bytes!("../../models/gab-q4_0.gguf");

/// The name of the built-in model on the command line.
pub const NAME: &str = "gab";
