//! A window in which a story writes itself, while what each pass of the model leaves on the GPU is drawn: the buffers (WebGPU)
//! or textures (WebGL2) themselves, between one pass and the next, on the device that the window is drawn with.
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

/// A story writes itself, and what each pass of the model leaves on the GPU is drawn.
#[derive(Debug, Clone, Parser)]
struct Args {
    /// What computes, and draws the window: wgpu, or glow.
    #[arg(long, value_enum, default_value = "webgpu")]
    backend: Backend,
    /// A GGUF file; by default the built-in story model.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// How the story begins.
    #[arg(long, value_name = "TEXT", default_value = "Once upon a time")]
    prompt: String,
    /// How many tokens are written.
    #[arg(long, value_name = "N", default_value_t = 200)]
    tokens: usize,
    /// How many tokens are written in a second, at most.
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    speed: f64,
    /// Draws tokens at random, by this seed; without it the likeliest is taken.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// When the story ends, saves the window as PNG, says on the standard output what it shows, as JSON, and closes.
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
        // Dots of values are to be of the colour that they stand for.
        dithering: false,
        ..NativeOptions::default()
    };
    gpu::ask(&mut options.wgpu_options);
    if args.screenshot.is_some() {
        // Nobody looks at the frames before.
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
    // A window that was closed has nothing to tell.
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
