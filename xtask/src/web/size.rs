//! What a page downloads, and the limit on it.

use super::dist;
use crate::progress;
use anyhow::{Context, Result};
use brotli::enc::BrotliEncoderParams;
use serde_json::{Value, json};
use std::fs;
use std::io::Cursor;
use std::path::Path;

/// All that a page downloads before the model may have so many bytes after brotli.
pub const LIMIT: usize = 1_000_000;

/// The parts: a name, and which files of `dist` belong to it, by the beginning and the end of their path. Each file
/// belongs to the first that fits.
const PARTS: &[(&str, &str, &[&str])] = &[
    ("engine (WebAssembly)", "anygpu/wasm/", &[".wasm"]),
    ("bindings (JavaScript)", "anygpu/wasm/", &[".js"]),
    ("package (JavaScript)", "anygpu/src/", &[".js"]),
    ("page", "", &[".html", ".css", ".js", ".svg", ".png", ".ico", ".woff2", ".webmanifest"]),
];

/// The sizes of a part.
struct Part {
    name: &'static str,
    raw: usize,
    brotli: usize,
}

/// The sizes of `dist`.
pub struct Sizes(Vec<Part>);

impl Sizes {
    /// Measures what was built.
    pub fn measure() -> Result<Sizes> {
        progress::during("compressing as a host would", || {
            let mut parts: Vec<Part> = PARTS.iter().map(|(name, ..)| Part { name, raw: 0, brotli: 0 }).collect();
            add_folder(&dist::folder(), "", &mut parts)?;
            Ok(Sizes(parts))
        })
    }

    /// Bytes after brotli.
    fn total(&self) -> usize {
        self.0.iter().map(|part| part.brotli).sum()
    }

    /// Whether the limit is kept.
    pub fn hold(&self) -> bool {
        self.total() <= LIMIT
    }

    /// Shows the sizes by part, and what they add up to.
    pub fn print(&self) {
        let raw: usize = self.0.iter().map(|part| part.raw).sum();
        println!("{:24} {:>12} {:>12}", "before the model", "bytes", "brotli");
        for part in &self.0 {
            println!("{:24} {:>12} {:>12}", part.name, part.raw, part.brotli);
        }
        let verdict = if self.hold() { "within" } else { "BEYOND" };
        println!("{:24} {raw:>12} {:>12}  {verdict} the limit of {LIMIT}", "total", self.total());
    }

    /// The same for a program.
    pub fn json(&self) -> Value {
        let parts = self.0.iter().map(|p| json!({ "name": p.name, "bytes": p.raw, "brotli": p.brotli }));
        json!({ "parts": parts.collect::<Vec<_>>(), "brotli": self.total(), "limit": LIMIT, "ok": self.hold() })
    }
}

/// Adds all files of a folder; `prefix` is its path in `dist`.
fn add_folder(folder: &Path, prefix: &str, parts: &mut [Part]) -> Result<()> {
    let remedy = || format!("cannot read {}; build it with `cargo xtask web --no-serve`", folder.display());
    for entry in fs::read_dir(folder).with_context(remedy)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            add_folder(&entry.path(), &format!("{path}/"), parts)?;
            continue;
        }
        let fits = |(_, begin, ends): &&(&str, &str, &[&str])| {
            path.starts_with(begin) && ends.iter().any(|end| path.ends_with(end))
        };
        let Some(position) = PARTS.iter().position(|part| fits(&part)) else { continue };
        let bytes = fs::read(entry.path()).with_context(|| format!("cannot read dist/{path}"))?;
        if let Some(part) = parts.get_mut(position) {
            part.raw += bytes.len();
            part.brotli += compressed(&bytes)?;
        }
    }
    Ok(())
}

/// How many bytes a host would send.
fn compressed(bytes: &[u8]) -> Result<usize> {
    let parameters = BrotliEncoderParams { quality: 11, lgwin: 22, ..BrotliEncoderParams::default() };
    let mut out = Vec::new();
    brotli::BrotliCompress(&mut Cursor::new(bytes), &mut out, &parameters)?;
    Ok(out.len())
}
