//! The three browsers: where they are, and how they are started.

use super::versions::Version;
use crate::process;
use anyhow::{Context, Result};
use clap::ValueEnum;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// What is known of a browser.
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

/// No window, no first-run pages, no traffic except the page's; errors of the page on the standard error stream.
const CHROMIUM_FLAGS: &[&str] = &[
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--enable-logging=stderr",
    "--enable-unsafe-swiftshader",
];

/// What the installed Chromium has besides.
const CHROMIUM_TODAY: &[&str] = &["--headless=new", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"];

/// What an old one has besides its own flags. It would end as soon as the page is loaded if nobody could debug it, and its
/// sandbox has not been told of the system calls of today.
const CHROMIUM_OLD: &[&str] = &["--headless", "--no-sandbox", "--ignore-gpu-blocklist", "--remote-debugging-port=0"];

/// The same for Firefox, and WebGL2 in software.
const FIREFOX_PREFS: &[(&str, &str)] = &[
    ("webgl.force-enabled", "true"),
    ("webgl.forbid-software", "false"),
    ("devtools.console.stdout.content", "true"),
    ("browser.shell.checkDefaultBrowser", "false"),
    ("browser.aboutwelcome.enabled", "false"),
    ("browser.startup.page", "0"),
    ("datareporting.policy.dataSubmissionEnabled", "false"),
    ("toolkit.telemetry.reportingpolicy.firstRun", "false"),
    ("network.captive-portal-service.enabled", "false"),
    ("network.connectivity-service.enabled", "false"),
    ("app.normandy.enabled", "false"),
    ("services.settings.server", "\"http://127.0.0.1:9/\""),
    ("extensions.update.enabled", "false"),
    ("browser.sessionstore.resume_from_crash", "false"),
];

const FIREFOX_WEBGPU: &[(&str, &str)] = &[("dom.webgpu.enabled", "true"), ("gfx.webgpu.ignore-blocklist", "true")];

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

    /// The command that opens an address with a fresh profile.
    pub fn command(
        self,
        program: &Path,
        version: Option<&Version>,
        profile: &Path,
        backend: &str,
        url: &str,
        flags: &[String],
    ) -> Result<Command> {
        let mut command = Command::new(program);
        match self {
            Kind::Chromium => {
                command.args(CHROMIUM_FLAGS).arg(format!("--user-data-dir={}", profile.display()));
                match version {
                    None => command.args(CHROMIUM_TODAY),
                    Some(version) => command.args(CHROMIUM_OLD).args(version.flags),
                };
                if is_root() {
                    // Its sandbox refuses to run as root.
                    command.arg("--no-sandbox");
                }
                command.args(flags).arg(url);
            }
            Kind::Firefox => {
                let webgpu: &[_] = if backend.starts_with("webgpu") { FIREFOX_WEBGPU } else { &[] };
                let lines = FIREFOX_PREFS.iter().chain(webgpu);
                let prefs: String = lines.map(|(name, value)| format!("user_pref(\"{name}\", {value});\n")).collect();
                fs::write(profile.join("user.js"), prefs).context("cannot write the profile")?;
                command.args(["--no-remote", "--new-instance", "--profile"]).arg(profile).arg(url);
                command.env("MOZ_CRASHREPORTER_DISABLE", "1").env("HOME", profile);
            }
            Kind::Webkit => {
                command.args(["--enable-write-console-messages-to-stdout=true", url]);
                for variable in ["HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"] {
                    command.env(variable, profile);
                }
                command.env("GDK_BACKEND", "x11").env("GTK_A11Y", "none").env("NO_AT_BRIDGE", "1");
            }
        }
        if self.facts().display {
            command.env("LIBGL_ALWAYS_SOFTWARE", "1");
        }
        Ok(command)
    }

    /// The text of a line of its log, if it is an error that nobody caught. The page reports what goes to its console.
    pub fn page_error(self, line: &str) -> Option<&str> {
        let marks: &[&str] = match self {
            Kind::Chromium => &["\"Uncaught"],
            Kind::Firefox => &["JavaScript error: http://127.0.0.1"],
            Kind::Webkit => &["CONSOLE JS ERROR", "CONSOLE SECURITY ERROR"],
        };
        marks.iter().find_map(|mark| line.find(mark)).and_then(|at| line.get(at..))
    }
}

#[cfg(unix)]
fn is_root() -> bool {
    nix::unistd::Uid::effective().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}
