//! Runs the suite on the backends of this machine.
#![forbid(unsafe_code)]

#[cfg(not(target_arch = "wasm32"))]
mod backends;
#[cfg(not(target_arch = "wasm32"))]
mod cli;
#[cfg(not(target_arch = "wasm32"))]
mod mutate;
#[cfg(not(target_arch = "wasm32"))]
mod vectors;

#[cfg(not(target_arch = "wasm32"))]
fn main() -> std::process::ExitCode {
    cli::main()
}

#[cfg(target_arch = "wasm32")]
fn main() {}
