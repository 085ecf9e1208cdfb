//! Browsers: which there are, and where their programs are.

use crate::process;
use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// A browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Chromium, or a browser built on it: WebGPU and WebGL2 in software, unless flags say otherwise.
    Chromium,
    /// Firefox: WebGL2 as installed; WebGPU, switched on, if that is the backend.
    Firefox,
    /// WebKitGTK's MiniBrowser: WebGL2.
    Webkit,
}

/// Facts about a browser.
struct Facts {
    name: &'static str,
    /// Names its program.
    variable: &'static str,
    /// Programs on PATH, or at these places.
    programs: &'static [&'static str],
    package: &'static str,
    /// Whether it needs a display even though nobody looks.
    display: bool,
}

const CHROMIUM: Facts = Facts {
    name: "chromium",
    variable: "ANYGPU_CHROMIUM",
    programs: &[
        "chromium",
        "chromium-browser",
        "google-chrome",
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    ],
    package: "chromium",
    display: false,
};

const FIREFOX: Facts = Facts {
    name: "firefox",
    variable: "ANYGPU_FIREFOX",
    programs: &["firefox-esr", "firefox", "/Applications/Firefox.app/Contents/MacOS/firefox"],
    package: "firefox-esr",
    display: cfg!(target_os = "linux"),
};

const WEBKIT: Facts = Facts {
    name: "webkit",
    variable: "ANYGPU_WEBKIT",
    programs: &[
        "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser",
        "/usr/lib/aarch64-linux-gnu/webkit2gtk-4.1/MiniBrowser",
        "/usr/libexec/webkit2gtk-4.1/MiniBrowser",
        "/usr/lib/webkit2gtk-4.1/MiniBrowser",
    ],
    package: "libwebkit2gtk-4.1-0",
    display: true,
};

impl Kind {
    const fn facts(self) -> &'static Facts {
        match self {
            Kind::Chromium => &CHROMIUM,
            Kind::Firefox => &FIREFOX,
            Kind::Webkit => &WEBKIT,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// Whether it needs a display even though nobody looks.
    pub fn needs_display(self) -> bool {
        self.facts().display
    }

    /// Its program; otherwise what to do.
    pub fn find(self) -> Result<PathBuf, String> {
        let facts = self.facts();
        let absent = || {
            let (name, package, variable) = (facts.name, facts.package, facts.variable);
            format!("{name} is not installed: apt-get install {package}, or name the program in {variable}")
        };
        let program = match std::env::var_os(facts.variable) {
            Some(path) => Some(PathBuf::from(path)).filter(|path| path.is_file()),
            None => facts.programs.iter().find_map(|name| match Path::new(name).is_absolute() {
                true => Some(PathBuf::from(name)).filter(|path| path.is_file()),
                false => process::which(name),
            }),
        };
        let program = program.ok_or_else(absent)?;
        if facts.display && std::env::var_os("DISPLAY").is_none() && process::which("Xvfb").is_none() {
            return Err(format!("{} needs a display: apt-get install xvfb", facts.name));
        }
        Ok(program)
    }
}

/// Names a program that this machine lacks to fetch or run an old Chromium.
pub fn lacks_for_old() -> Option<String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Some("old browsers are for x86-64 Linux".into());
    }
    let absent = ["npm", "tar"].into_iter().find(|program| process::which(program).is_none())?;
    Some(format!("old browsers are fetched with {absent}, which is not installed"))
}
