//! Running graphs: how to wait for a backend, and a graph with storages of its own.

mod host;
mod join;
mod paced;
mod rig;

#[cfg(not(target_arch = "wasm32"))]
pub use host::NativeHost;
pub use host::{Host, Turn, finish_profile, finish_read, read_rows, ready};
pub use join::{Local, join};
pub use paced::{Beside, step, step_beside, turn};
pub use rig::{OVERRUN, Rig};
