//! The folder that a static host serves.

use crate::{release, root};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// What goes where: from the workspace into `dist`. Folders are copied with all their contents.
const PARTS: &[(&str, &str)] = &[
    ("examples/web", ""),
    ("js/package.json", "anygpu/package.json"),
    ("js/README.md", "anygpu/README.md"),
    ("js/index.d.ts", "anygpu/index.d.ts"),
    ("LICENSE-MIT", "anygpu/LICENSE-MIT"),
    ("LICENSE-APACHE", "anygpu/LICENSE-APACHE"),
    ("js/src", "anygpu/src"),
    ("js/wasm", "anygpu/wasm"),
    ("models/gab-q4_0.gguf", MODEL),
];

/// The page's own model, in `dist`.
pub const MODEL: &str = "models/gab-q4_0.gguf";

/// The modules, in `dist`.
pub const WASM: &[&str] = &[
    "anygpu/wasm/bindings_bg.wasm",
    "anygpu/wasm/conformance_bg.wasm",
    "anygpu/wasm/older/bindings_bg.wasm",
    "anygpu/wasm/older/conformance_bg.wasm",
];

/// The folder.
pub fn folder() -> PathBuf {
    root().join("dist")
}

/// Fills it, with modules of this version of the compiler. What was there stays until all of it has been copied.
pub fn assemble(rustc: &str) -> Result<()> {
    let partial = root().join("dist.partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).with_context(|| format!("cannot remove {}", partial.display()))?;
    }
    for (from, to) in PARTS {
        copy(&root().join(from), &partial.join(to))?;
    }
    release::write(&partial, rustc)?;
    super::replace(&partial, &folder())
}

/// Copies a file, or a folder with all its contents.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
            let name = entry?.file_name();
            copy(&from.join(&name), &to.join(&name))?;
        }
        return Ok(());
    }
    let parent = to.parent().unwrap_or(to);
    fs::create_dir_all(parent).with_context(|| format!("cannot make the folder {}", parent.display()))?;
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}
