//! `cargo xtask`: tests are run from here; any other task is that of `xtask/tasks`.
#![forbid(unsafe_code)]

use anyhow::{Context, Result};
use clap::Parser;
use std::ffi::OsString;
use std::process::{Command, ExitCode};
use xtask::{process, root, test};

/// The name of the one task that does not need the larger program to be built first.
const TEST: &str = "test";

/// Parses the arguments of `cargo xtask test`.
#[derive(Parser)]
#[command(name = "cargo xtask test", bin_name = "cargo xtask test", about = test::ABOUT, max_term_width = 110)]
struct Test {
    #[command(flatten)]
    options: test::Options,
}

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let done = match args.first() {
        Some(task) if task == TEST => test::run(&Test::parse_from(args).options),
        _ => start(&args),
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

/// Builds the program of the other tasks, and runs it. True if it succeeded.
fn start(args: &[OsString]) -> Result<bool> {
    let mut cargo = Command::new(process::cargo());
    cargo.args(["run", "--quiet", "--release", "--package", "xtask-tasks", "--"]).args(args);
    let status = cargo.current_dir(root()).status().context("cannot start cargo")?;
    Ok(status.success())
}
