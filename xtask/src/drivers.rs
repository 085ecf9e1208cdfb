//! Which GPU drivers this machine has, and whether it can show windows, found without loading anything: a broken driver must
//! not take the task down.

#[cfg(target_os = "linux")]
use std::{fs, path::Path, process::Command};

/// Variables by which Mesa's drivers in software have no threads of their own. With them, a fence may be freed while the thread
/// that signals it still writes to it, which damages the heap. `.cargo/config.toml` has them for tests that cargo starts by itself.
pub const SAFE: [(&str, &str); 1] = [("LP_NUM_THREADS", "0")];

/// Variables by which a test program does not use a processor that another run needs.
pub const ALONE: [(&str, &str); 1] = [("RUST_TEST_THREADS", "1")];

/// Variables by which Mesa's drivers in software compile a shader in two thirds of the time, and to code that takes longer: tests
/// run few steps of many shaders.
pub const QUICK: [(&str, &str); 1] = [("GALLIVM_PERF", "nopt")];

/// Requirement of a backend, or of a window.
pub struct Driver {
    /// The backend, or `display`, as `ANYGPU_SKIP` names it.
    pub backend: &'static str,
    /// Requirement, in words.
    pub what: &'static str,
    /// Library or program that was found, or how to install it.
    pub found: Result<String, String>,
}

/// Looks for the driver of each GPU backend, and for a display.
pub fn find() -> Vec<Driver> {
    vec![
        Driver { backend: "webgpu", what: "Vulkan adapter", found: vulkan() },
        Driver { backend: "webgl", what: "EGL with OpenGL ES 3", found: egl() },
        Driver { backend: "display", what: "X11 for windows", found: display() },
    ]
}

#[cfg(target_os = "linux")]
fn vulkan() -> Result<String, String> {
    library("libvulkan.so.1", "libvulkan1")?;
    let home = std::env::var("HOME").unwrap_or_default();
    let folders = ["/usr/share", "/usr/local/share", "/etc", &format!("{home}/.local/share")]
        .map(|folder| format!("{folder}/vulkan/icd.d"));
    let named = std::env::var("VK_DRIVER_FILES").or_else(|_| std::env::var("VK_ICD_FILENAMES")).unwrap_or_default();
    let mut drivers: Vec<String> = folders.iter().flat_map(|folder| manifests(Path::new(folder))).collect();
    drivers.extend(named.split(':').filter(|f| Path::new(f).is_file()).map(String::from));
    if drivers.is_empty() {
        return Err("no Vulkan driver is installed; a software one: apt-get install mesa-vulkan-drivers".into());
    }
    drivers.sort();
    Ok(format!("libvulkan.so.1 with {}", drivers.join(", ")))
}

#[cfg(target_os = "linux")]
fn egl() -> Result<String, String> {
    library("libEGL.so.1", "libegl1")?;
    let vendors: Vec<String> = ["/usr/share/glvnd/egl_vendor.d", "/etc/glvnd/egl_vendor.d"]
        .iter()
        .flat_map(|f| manifests(Path::new(f)))
        .collect();
    if vendors.is_empty() {
        return Err("no EGL driver is installed; a software one: apt-get install libegl-mesa0 libgl1-mesa-dri".into());
    }
    Ok(format!("libEGL.so.1 with {}", vendors.join(", ")))
}

/// A display that nobody sees, with the libraries that windows load.
#[cfg(target_os = "linux")]
fn display() -> Result<String, String> {
    let libraries = [
        ("libGL.so.1", "libgl1"),
        ("libX11-xcb.so.1", "libx11-xcb1"),
        ("libXcursor.so.1", "libxcursor1"),
        ("libXi.so.6", "libxi6"),
        ("libxkbcommon-x11.so.0", "libxkbcommon-x11-0"),
    ];
    libraries.into_iter().try_for_each(|(name, package)| library(name, package))?;
    let path = std::env::var("PATH").unwrap_or_default();
    let has_server = std::env::split_paths(&path).any(|folder| folder.join("Xvfb").is_file());
    if has_server {
        Ok("Xvfb with libraries of X11".into())
    } else {
        Err("Xvfb is missing: apt-get install xvfb".into())
    }
}

/// Names of the driver manifests of a folder.
#[cfg(target_os = "linux")]
fn manifests(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter_map(|name| name.strip_suffix(".json").map(String::from)).collect()
}

/// Whether the dynamic linker would find a library.
#[cfg(target_os = "linux")]
fn library(name: &str, package: &str) -> Result<(), String> {
    let cache = Command::new("/sbin/ldconfig").arg("-p").output().map(|out| out.stdout).unwrap_or_default();
    let in_cache = String::from_utf8_lossy(&cache).lines().any(|line| line.trim_start().starts_with(name));
    let path = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    if in_cache || in_path { Ok(()) } else { Err(format!("{name} is missing: apt-get install {package}")) }
}

#[cfg(not(target_os = "linux"))]
fn vulkan() -> Result<String, String> {
    Ok("the system's own (Metal or Direct3D 12)".into())
}

#[cfg(not(target_os = "linux"))]
fn display() -> Result<String, String> {
    Ok("the system's own".into())
}

#[cfg(not(target_os = "linux"))]
fn egl() -> Result<String, String> {
    Err("EGL is looked for on Linux only; there is nothing to install".into())
}
