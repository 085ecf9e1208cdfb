//! How each browser is started for an automated run, and how its log tells of errors.

use super::versions::Version;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;
use xtask::browsers::Kind;

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

/// Further flags of the installed Chromium.
const CHROMIUM_TODAY: &[&str] = &["--headless=new", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"];

/// Further flags of an old Chromium. Without the debugging port it would end as soon as the page is loaded; its
/// sandbox does not know the system calls of today.
const CHROMIUM_OLD: &[&str] = &["--headless", "--no-sandbox", "--ignore-gpu-blocklist", "--remote-debugging-port=0"];

/// Preferences of Firefox: no first-run pages, no traffic except the page's, and WebGL2 in software.
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

/// Builds the command that opens an address with a fresh profile.
pub fn command(
    kind: Kind,
    program: &Path,
    version: Option<&Version>,
    profile: &Path,
    backend: &str,
    url: &str,
    flags: &[String],
) -> Result<Command> {
    let mut command = Command::new(program);
    match kind {
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
    if kind.needs_display() {
        command.env("LIBGL_ALWAYS_SOFTWARE", "1");
    }
    Ok(command)
}

/// Returns the text of a line of a browser's log, if it is an error that nobody caught. The page reports what goes to its console.
pub fn page_error(kind: Kind, line: &str) -> Option<&str> {
    let marks: &[&str] = match kind {
        Kind::Chromium => &["\"Uncaught"],
        Kind::Firefox => &["JavaScript error: http://127.0.0.1"],
        Kind::Webkit => &["CONSOLE JS ERROR", "CONSOLE SECURITY ERROR"],
    };
    marks.iter().find_map(|mark| line.find(mark)).and_then(|at| line.get(at..))
}

#[cfg(unix)]
fn is_root() -> bool {
    nix::unistd::Uid::effective().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}
