//! The anygpu command line.
#![forbid(unsafe_code)]

mod alloc;
mod args;
mod bench;
mod chat;
mod documents;
mod drivers;
mod embed;
mod embedded;
mod generate;
mod inspect;
mod interrupt;
mod load;
mod logits;
mod models;
mod npy;
mod output;
mod pool;
mod probe;
mod proven;
mod rerank;
mod saved;
mod serve;
mod signals;
mod text;
mod tokens;
mod trace;
mod tune;
mod wrap;

use anygpu::Choice;
use args::pool::PoolCommand;
use args::{Cli, Command};
use clap::Parser;
use clap::error::ErrorKind;
use std::env;
use std::ffi::OsStr;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(argument) = env::args_os().skip(1).find(|argument| argument.to_str().is_none()) {
        output::note(&format!("error: {} is not UTF-8; give text and names in UTF-8", shown(&argument)));
        return ExitCode::from(2);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // These errors already say what to do; clap's pointer to --help would make a second line. Invalid UTF-8 can
        // only be in the environment here.
        Err(error) if matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidUtf8) => {
            output::note(error.to_string().lines().next().unwrap_or_default());
            return ExitCode::from(2);
        }
        Err(error) => error.exit(),
    };
    if let Some(device) = cli.device().filter(|device| device.backend != Choice::Cpu) {
        drivers::set_up(!device.driver_log);
    }
    // Servers handle Ctrl-C themselves.
    let serves =
        matches!(cli.command, Some(Command::Serve(_) | Command::Pool(PoolCommand::Serve(_) | PoolCommand::Work(_))));
    let listening = if serves { Ok(()) } else { interrupt::listen() };
    match listening.and_then(|()| run(&cli)) {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::from(interrupt::EXIT_CODE),
        Err(error) if output::reader_left(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            ExitCode::FAILURE
        }
    }
}

/// Formats the beginning of an argument that is not UTF-8.
fn shown(argument: &OsStr) -> String {
    let debug = format!("{argument:?}");
    if debug.chars().count() <= 80 { debug } else { debug.chars().take(80).collect::<String>() + "..." }
}

/// Runs the command. Returns whether it was interrupted.
fn run(cli: &Cli) -> anyhow::Result<bool> {
    match &cli.command {
        None => return generate::story(&cli.device),
        Some(Command::Generate(on)) => return generate::run(&on.args, &on.device),
        Some(Command::Serve(on)) => return serve::run(&on.args, &on.device),
        Some(Command::Pool(command)) => return pool::run(command),
        Some(Command::Chat(on)) => return chat::run(&on.args.load, &on.args.talk, &on.device),
        Some(Command::Run(on)) => return chat::asked(&on.args, &on.device),
        Some(Command::Probe(on)) => probe::run(&on.device, on.args.json)?,
        Some(Command::Logits(on)) => logits::run(&on.args, &on.device)?,
        Some(Command::Embed(on)) => embed::run(&on.args, &on.device)?,
        Some(Command::Rerank(on)) => rerank::run(&on.args, &on.device)?,
        Some(Command::Tokenize { model, text, no_special, json }) => tokens::encode(model, text, !no_special, *json)?,
        Some(Command::Detokenize { model, tokens, no_special, json }) => {
            tokens::decode(model, tokens, !no_special, *json)?;
        }
        Some(Command::Completions { shell }) => documents::completions(*shell)?,
        Some(Command::Man { command }) => documents::manual(command)?,
        Some(Command::Pull { model }) => models::pull(model)?,
        Some(Command::Ls { json }) => models::list(*json)?,
        Some(Command::Rm { model }) => models::remove(model)?,
        Some(Command::Bench(on)) => bench::run(&on.args, &on.device)?,
        Some(Command::Inspect(on)) => inspect::run(&on.args, &on.device)?,
        Some(Command::Trace(on)) => trace::run(&on.args, &on.device)?,
        Some(Command::Tune(on)) => tune::run(&on.args, &on.device)?,
    }
    Ok(false)
}
