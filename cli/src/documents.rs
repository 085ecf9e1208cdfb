//! `completions` and `man`: prints completion scripts for shells, and manual pages.

use crate::args::Cli;
use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::{self, Write};

/// Runs `completions`.
pub fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "anygpu", &mut script);
    write(&script)
}

/// Runs `man`: prints the page of a command, or one page with all commands.
///
/// *Errors*: there is no such command.
pub fn manual(names: &[String]) -> Result<()> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut page = Vec::new();
    if !names.is_empty() {
        let mut found = &command;
        for name in names {
            found = found
                .find_subcommand(name)
                .with_context(|| format!("there is no command {:?}; `anygpu --help` lists them", names.join(" ")))?;
        }
        clap_mangen::Man::new(found.clone()).render(&mut page)?;
        return write(&page);
    }
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    for command in command.get_subcommands() {
        writeln!(page, ".SH \"{}\"", command.get_name().to_uppercase())?;
        let man = clap_mangen::Man::new(command.clone());
        man.render_synopsis_section(&mut page)?;
        man.render_description_section(&mut page)?;
        man.render_options_section(&mut page)?;
    }
    write(&page)
}

/// Writes to the standard output. Returns an error if that was closed.
fn write(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}
