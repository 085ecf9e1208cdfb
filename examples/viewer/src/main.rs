//! Window in which a model writes a story, and which shows the result of each of its passes on the GPU. It draws the
//! backend's own buffers (WebGPU) or textures (WebGL2) between passes, on the device that also draws the window.
//!
//!     cargo run --release -p anygpu-viewer
//!     cargo run --release -p anygpu-viewer -- --backend webgl

mod board;
mod colour;
mod gl;
mod gpu;
mod report;
mod story;
mod tiles;
mod window;

use anyhow::{Result, anyhow};
use clap::{Parser, ValueEnum};
use eframe::egui::ViewportBuilder;
use eframe::{NativeOptions, Renderer};
use std::path::PathBuf;

/// Watch a model write a story, with the result of each of its passes on the GPU.
#[derive(Debug, Clone, Parser)]
struct Args {
    /// The backend, and the window's renderer: webgpu (wgpu) or webgl (glow).
    #[arg(long, value_enum, default_value = "webgpu")]
    backend: Backend,
    /// A GGUF file [default: the built-in story model].
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// The beginning of the story.
    #[arg(long, value_name = "TEXT", default_value = "Once upon a time")]
    prompt: String,
    /// Number of tokens to write.
    #[arg(long, value_name = "N", default_value_t = 200)]
    tokens: usize,
    /// Most tokens to write in a second.
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    speed: f64,
    /// Sample tokens with this seed [default: always take the likeliest token].
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// When the story ends, save the window as a PNG file, print its contents as JSON, and close.
    #[arg(long, value_name = "FILE")]
    screenshot: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Backend {
    Webgpu,
    Webgl,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut options = NativeOptions {
        viewport: ViewportBuilder::default().with_title("anygpu").with_inner_size([1440.0, 860.0]),
        renderer: match args.backend {
            Backend::Webgpu => Renderer::Wgpu,
            Backend::Webgl => Renderer::Glow,
        },
        // Dithering would change the colours of the dots.
        dithering: false,
        ..NativeOptions::default()
    };
    gpu::ask(&mut options.wgpu_options);
    if args.screenshot.is_some() {
        // Nobody sees the frames before the screenshot.
        options.wgpu_options.surface.present_mode = backend_webgpu::wgpu::PresentMode::AutoNoVsync;
    }
    let (tell, told) = std::sync::mpsc::channel();
    let shown = eframe::run_native(
        "anygpu",
        options,
        Box::new(|context| Ok(Box::new(window::Window::new(args, context, tell)))),
    );
    shown.map_err(|error| match error {
        eframe::Error::WinitEventLoop(_) => {
            anyhow!("there is no display to show a window on; set DISPLAY, or let xvfb-run make one that nobody sees")
        }
        error => anyhow!("the window cannot be shown: {error}; update the graphics driver, or try the other backend"),
    })?;
    // If the user has closed the window, there is no result.
    told.try_recv().unwrap_or(Ok(()))
}

#[cfg(test)]
#[path = "../../../xtask/tasks/src/documented.rs"]
mod documented;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_the_documents_name_can_be_parsed() {
        let named = documented::commands(&["cargo run --release -p anygpu-viewer --"]);
        assert!(!named.is_empty());
        for command in named {
            let args = ["anygpu-viewer"].into_iter().chain(command.args.iter().map(String::as_str));
            let parsed = Args::try_parse_from(args);
            assert!(parsed.is_ok(), "{command}: {parsed:?}");
        }
    }
}
