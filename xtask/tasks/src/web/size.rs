//! Sizes of a page's downloads, and the limit on them.

use super::dist;
use crate::progress;
use anyhow::{Context, Result};
use brotli::enc::BrotliEncoderParams;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Cursor;
use std::path::Path;

/// The most bytes, after brotli, that a page may download before the model.
pub const LIMIT: usize = 1_000_000;

/// When a part is downloaded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// Before the model; the limit is on these.
    First,
    /// When a visitor asks for it.
    Asked,
    /// By older browsers, instead of the same for browsers of today.
    Older,
    /// By pages that may have threads, likewise.
    Threads,
}

/// The parts: a name, when it is downloaded, and which files of `dist` belong to it, by the beginning and the end of their
/// path. Each file belongs to the first part that matches.
const PARTS: &[(&str, When, &str, &[&str])] = &[
    ("engine (WebAssembly)", When::Older, "anygpu/wasm/older/bindings", &[".wasm"]),
    ("bindings (JavaScript)", When::Older, "anygpu/wasm/older/bindings", &[".js"]),
    ("suite, when asked for", When::Older, "anygpu/wasm/older/conformance", &[".wasm", ".js"]),
    ("engine (WebAssembly)", When::Threads, "anygpu/wasm/threads/bindings", &[".wasm"]),
    ("bindings (JavaScript)", When::Threads, "anygpu/wasm/threads/bindings", &[".js"]),
    ("suite, when asked for", When::Threads, "anygpu/wasm/threads/conformance", &[".wasm", ".js"]),
    ("package (JavaScript)", When::Older, "anygpu/src/", &["-older.js"]),
    ("package (JavaScript)", When::Threads, "anygpu/src/", &["-threads.js"]),
    ("formats of answers", When::Older, "anygpu/wasm/older/constrain", &[".wasm", ".js"]),
    ("formats of answers", When::Asked, "anygpu/wasm/constrain", &[".wasm", ".js"]),
    ("their part of the package", When::Asked, "anygpu/src/format", &[".js"]),
    ("suite (WebAssembly)", When::Asked, "anygpu/wasm/conformance", &[".wasm"]),
    ("its bindings (JavaScript)", When::Asked, "anygpu/wasm/conformance", &[".js"]),
    ("its part of the package", When::Asked, "anygpu/src/suite", &[".js"]),
    ("pool (WebAssembly)", When::Asked, "anygpu/wasm/pool", &[".wasm"]),
    ("its bindings (JavaScript)", When::Asked, "anygpu/wasm/pool", &[".js"]),
    ("its part of the package", When::Asked, "anygpu/src/pool", &[".js"]),
    ("its client of NATS", When::Asked, "anygpu/vendor/", &[".js"]),
    ("models by their names on a hub", When::Asked, "anygpu/src/download/hub", &[".js"]),
    ("for other runtimes, React and others", When::Asked, "anygpu/src/with-", &[".js"]),
    ("Markdown of answers", When::Asked, "vendor/", &[".js"]),
    (TABS, When::Asked, "", &[]),
    ("engine (WebAssembly)", When::First, "anygpu/wasm/", &[".wasm"]),
    ("bindings (JavaScript)", When::First, "anygpu/wasm/", &[".js"]),
    ("package (JavaScript)", When::First, "anygpu/src/", &[".js"]),
    ("page", When::First, "", &[".html", ".css", ".js", ".svg", ".png", ".ico", ".woff2", ".webmanifest"]),
];

/// Files that the page imports when a tab is opened or a button pressed, and other pages: the part of its files that
/// [`first`] does not find.
const TABS: &str = "other tabs, other pages";

/// The sizes of a part.
struct Part {
    name: &'static str,
    when: When,
    raw: usize,
    brotli: usize,
}

/// The sizes of `dist`.
pub struct Sizes(Vec<Part>);

impl Sizes {
    /// Measures what was built: what is downloaded before the model, or everything, which takes minutes to compress.
    pub fn measure(everything: bool) -> Result<Sizes> {
        progress::during("compressing as a host would", || {
            let empty = |(name, when, ..): &(&'static str, When, _, _)| Part { name, when: *when, raw: 0, brotli: 0 };
            let mut parts: Vec<Part> = PARTS.iter().map(empty).collect();
            add_folder(&dist::folder(), "", &first(&dist::folder())?, everything, &mut parts)?;
            parts.retain(|part| everything || part.when == When::First);
            Ok(Sizes(parts))
        })
    }

    fn parts(&self, when: When) -> impl Iterator<Item = &Part> {
        self.0.iter().filter(move |part| part.when == when)
    }

    /// Bytes, and bytes after brotli.
    fn total(&self, when: When) -> (usize, usize) {
        self.parts(when).fold((0, 0), |(raw, brotli), part| (raw + part.raw, brotli + part.brotli))
    }

    /// Whether the limit is kept.
    pub fn hold(&self) -> bool {
        self.total(When::First).1 <= LIMIT
    }

    /// Shows the sizes by part, and what they add up to.
    pub fn print(&self) {
        let titles = [
            ("before the model", When::First),
            ("when asked for", When::Asked),
            ("by older browsers", When::Older),
            ("with threads", When::Threads),
        ];
        for (title, when) in titles.into_iter().filter(|(_, when)| self.parts(*when).next().is_some()) {
            println!("{title:26} {:>12} {:>12}", "bytes", "brotli");
            for part in self.parts(when) {
                println!("{:26} {:>12} {:>12}", part.name, part.raw, part.brotli);
            }
            let (raw, brotli) = self.total(when);
            let verdict = match (when, self.hold()) {
                (When::First, true) => format!("  within the limit of {LIMIT}"),
                (When::First, false) => format!("  BEYOND the limit of {LIMIT}"),
                (When::Asked | When::Older | When::Threads, _) => String::new(),
            };
            println!("{:26} {raw:>12} {brotli:>12}{verdict}", "total");
        }
    }

    /// Returns the sizes as JSON.
    pub fn json(&self) -> Value {
        let parts = |when| {
            let part = |p: &Part| json!({ "name": p.name, "bytes": p.raw, "brotli": p.brotli });
            self.parts(when).map(part).collect::<Vec<_>>()
        };
        let (_, brotli) = self.total(When::First);
        json!({
            "parts": parts(When::First), "brotli": brotli, "limit": LIMIT, "ok": self.hold(),
            "asked": parts(When::Asked), "older": parts(When::Older), "threads": parts(When::Threads),
        })
    }
}

/// The files of the page itself that a visit begins with: what `index.html` names, and what those modules import before they run.
fn first(dist: &Path) -> Result<BTreeSet<String>> {
    let read = |name: &str| fs::read_to_string(dist.join(name)).with_context(|| format!("cannot read dist/{name}"));
    let (mut known, mut next) = (BTreeSet::new(), vec!["index.html".to_owned()]);
    while let Some(name) = next.pop() {
        let begins: &[&str] =
            if name.ends_with(".html") { &["src=\"", "href=\""] } else { &["from \"./", "import \"./"] };
        if name.ends_with(".html") || name.ends_with(".js") {
            let text = read(&name)?;
            let named =
                begins.iter().flat_map(|begin| text.split(begin).skip(1).filter_map(|rest| rest.split('"').next()));
            next.extend(named.filter(|file| !known.contains(*file) && dist.join(file).is_file()).map(str::to_owned));
        }
        known.insert(name);
    }
    Ok(known)
}

/// Adds the files of a folder, of later downloads only if `everything` is measured; `prefix` is its path in `dist`.
fn add_folder(
    folder: &Path,
    prefix: &str,
    first: &BTreeSet<String>,
    everything: bool,
    parts: &mut [Part],
) -> Result<()> {
    let remedy = || format!("cannot read {}; build it with `cargo xtask web --no-serve`", folder.display());
    for entry in fs::read_dir(folder).with_context(remedy)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            add_folder(&entry.path(), &format!("{path}/"), first, everything, parts)?;
            continue;
        }
        let fits = |(_, _, begin, ends): &&(&str, When, &str, &[&str])| {
            path.starts_with(begin) && ends.iter().any(|end| path.ends_with(end))
        };
        let Some(mut position) = PARTS.iter().position(|part| fits(&part)) else { continue };
        if prefix.is_empty() && [".js", ".css", ".html"].iter().any(|end| path.ends_with(end)) && !first.contains(&path)
        {
            position = PARTS.iter().position(|(name, ..)| *name == TABS).unwrap_or(position);
        }
        if let Some(part) = parts.get_mut(position).filter(|part| everything || part.when == When::First) {
            let bytes = fs::read(entry.path()).with_context(|| format!("cannot read dist/{path}"))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_begins_with_what_is_imported_before_anything_runs() {
        let folder = std::env::temp_dir().join(format!("anygpu-size-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in [
            ("index.html", "<script src=\"main.js\"></script><link href=\"base.css\"><a href=\"#top\">"),
            ("main.js", "import { a } from \"./a.js\";\nconst b = () => import(\"./b.js\");"),
            ("a.js", "import \"./c.js\";\nimport {\n  d,\n} from \"./main.js\";"),
            ("b.js", "import \"./c.js\";"),
            ("c.js", ""),
            ("base.css", ""),
        ] {
            fs::write(folder.join(name), text).unwrap();
        }
        let found = first(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert!(found.iter().eq(["a.js", "base.css", "c.js", "index.html", "main.js"]), "{found:?}");
    }
}
