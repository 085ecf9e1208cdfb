//! Runs the suite on the backends of this machine.
#![forbid(unsafe_code)]

mod backends;
mod cli;
mod list;
mod mutate;
mod peer;
mod random;
mod share;
mod vectors;

fn main() -> std::process::ExitCode {
    cli::main()
}
