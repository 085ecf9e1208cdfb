//! The folder that a static host serves.

use crate::{release, root};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders and files of the workspace, and their places in `dist`. Folders are copied with all their contents.
const PARTS: &[(&str, &str)] = &[
    ("web", ""),
    ("js/package.json", "anygpu/package.json"),
    ("js/prepack.mjs", "anygpu/prepack.mjs"),
    ("js/README.md", "anygpu/README.md"),
    ("js/index.d.ts", "anygpu/index.d.ts"),
    ("js/react.d.ts", "anygpu/react.d.ts"),
    ("js/ai-sdk.d.ts", "anygpu/ai-sdk.d.ts"),
    ("js/pool.d.ts", "anygpu/pool.d.ts"),
    ("js/types", "anygpu/types"),
    ("LICENSE-MIT", "anygpu/LICENSE-MIT"),
    ("LICENSE-APACHE", "anygpu/LICENSE-APACHE"),
    ("js/src", "anygpu/src"),
    ("js/vendor", "anygpu/vendor"),
    ("js/wasm", "anygpu/wasm"),
    ("models/gab-q4_0.gguf", MODEL),
];

/// The page's own model, in `dist`.
pub const MODEL: &str = "models/gab-q4_0.gguf";

/// The modules, in `dist`.
pub const WASM: &[&str] = &[
    "anygpu/wasm/bindings_bg.wasm",
    "anygpu/wasm/conformance_bg.wasm",
    "anygpu/wasm/constrain_bg.wasm",
    "anygpu/wasm/pool_bg.wasm",
    "anygpu/wasm/older/bindings_bg.wasm",
    "anygpu/wasm/older/conformance_bg.wasm",
    "anygpu/wasm/older/constrain_bg.wasm",
    "anygpu/wasm/threads/bindings_bg.wasm",
    "anygpu/wasm/threads/conformance_bg.wasm",
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
    let failed = || format!("cannot copy {} to {}", from.display(), to.display());
    if is_own_script(from) {
        let text = fs::read_to_string(from).with_context(failed)?;
        return fs::write(to, without_comments(&text)).with_context(failed);
    }
    fs::copy(from, to).map(drop).with_context(failed)
}

/// Whether it is JavaScript of the package or of the page itself. What others wrote is copied to the letter, with its licence.
fn is_own_script(path: &Path) -> bool {
    let page = root().join("web");
    path.starts_with(root().join("js/src"))
        || path.extension().is_some_and(|end| end == "js") && path.parent() == Some(&*page)
}

/// JavaScript without the lines that are comments: they take a third of what a visitor loads of the package, and a sixth of
/// the page. The package's types keep theirs, which editors show.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut within = false;
    for line in text.lines() {
        let code = line.trim();
        // What stands behind a comment, such as an expression whose type it says, is code.
        let begins = code.starts_with("/*") && code.find("*/").is_none_or(|end| end + 2 == code.len());
        if !within && !begins && !code.starts_with("//") {
            kept.push_str(line);
            kept.push('\n');
        }
        within = (within || begins) && !code.ends_with("*/");
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documented::below;

    /// Holds npm to refusing a package that lacks a module.
    #[test]
    fn a_package_has_all_modules() {
        let text = fs::read_to_string(root().join("js/prepack.mjs")).unwrap();
        let lists = text.split_once("const MODULES").unwrap().1.split_once("const NEEDED").unwrap().0;
        let mut demanded: Vec<_> = lists.split('"').skip(1).step_by(2).collect();
        let built = |path: &&'static str| path.strip_prefix("anygpu/wasm/")?.strip_suffix("_bg.wasm");
        let mut built: Vec<_> = WASM.iter().filter_map(built).collect();
        demanded.sort_unstable();
        built.sort_unstable();
        assert_eq!(built.len(), WASM.len());
        assert_eq!(demanded, built);
    }

    #[test]
    fn the_page_says_what_each_of_its_files_is_for() {
        let page = root().join("web");
        let readme = fs::read_to_string(page.join("README.md")).unwrap();
        let files = fs::read_dir(&page).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let is_part = |name: &String| name.ends_with(".js") || name.ends_with(".css");
        // Pools have a page of their own.
        let untold =
            files.filter(is_part).filter(|name| !name.starts_with("pool") && !readme.contains(&format!("`{name}`")));
        assert_eq!(untold.collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn lines_that_are_comments_are_not_shipped() {
        let text = "// One.\n/** Two\n * lines. */\nlet a = 1; // three\n\n    /* four */\n    /*\n * five\n */\n/** @type {A} */ (six);\nlet b = \"//\";\n";
        assert_eq!(without_comments(text), "let a = 1; // three\n\n/** @type {A} */ (six);\nlet b = \"//\";\n");
    }

    #[test]
    fn nothing_but_comments_is_left_out() {
        let files = ["js/src", "web"].into_iter().flat_map(|folder| below(&root().join(folder)));
        for path in files.filter(|path| is_own_script(path)) {
            let text = fs::read_to_string(&path).unwrap();
            let shipped = without_comments(&text);
            let mut kept = shipped.lines().peekable();
            for line in text.lines() {
                let comment = ["//", "/*", "*"].iter().any(|mark| line.trim().starts_with(mark));
                assert!(kept.next_if_eq(&line).is_some() || comment, "{}: {line}", path.display());
            }
            assert_eq!(kept.next(), None);
            // A text of several lines might have one that looks like a comment.
            for (line, rest) in text.match_indices('`').map(|(at, _)| text.split_at(at)) {
                let opens = line.matches('`').count().is_multiple_of(2);
                let inside = rest[1..].split('`').next().unwrap_or("");
                let odd =
                    inside.lines().skip(1).any(|line| line.trim().starts_with("//") || line.trim().starts_with("/*"));
                assert!(!opens || !odd, "{}: {inside}", path.display());
            }
        }
    }
}
